"""Settings and fixtures of all tests."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from pytest_selection import pytest_collection_modifyitems, pytest_configure  # noqa: E402, F401


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Returns the random generator of a test. The seed depends only on the name of the test,
    including its parameters."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
