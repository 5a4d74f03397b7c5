"""Fixtures of all tests."""

from __future__ import annotations

import zlib

import numpy as np
import pytest


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random generator of a test. Its seed depends only on the name of the test."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
