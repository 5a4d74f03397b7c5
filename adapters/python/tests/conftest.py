"""Settings of all tests of the package. With NDSCATTER_FULL=1, the tests with the marker `long` run
too."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_configure(config):
    config.addinivalue_line("markers", "long: a test of more than ten seconds, run by `check.sh full`")


def pytest_collection_modifyitems(items):
    if os.environ.get("NDSCATTER_FULL") == "1":
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="NDSCATTER_FULL is not 1"))
