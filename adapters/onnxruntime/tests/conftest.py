"""Fixtures of all tests."""

from __future__ import annotations

import zlib

import numpy as np
import pytest


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Returns the random generator of a test. The seed depends only on the name of the test,
    including its parameters."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
