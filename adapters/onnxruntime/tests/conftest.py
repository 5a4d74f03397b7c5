"""Fixtures for all tests."""

from __future__ import annotations

import zlib

import numpy as np
import pytest


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Values that are the same in every run of a test, and others in each test."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
