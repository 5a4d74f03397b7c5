"""Settings of all tests of the package."""

import sys
from pathlib import Path

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS.parents[1])]

from pytest_selection import pytest_collection_modifyitems, pytest_configure  # noqa: E402, F401
