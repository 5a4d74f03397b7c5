"""Hooks of pytest that select the tests of the adapters. A conftest.py imports the hooks.

Two markers leave out tests, unless the environment variable NDSCATTER_FULL is 1:

- `long` leaves out the test.
- `sampled(n)` leaves out all but about one of n cases of the test. A checksum of the name of a case
  decides, so the same cases run each time.
"""

import os
import zlib


def pytest_configure(config):
    config.addinivalue_line("markers", "long: a test that runs only with NDSCATTER_FULL=1")
    config.addinivalue_line("markers", "sampled(n): about one of n cases runs, or all with NDSCATTER_FULL=1")


def pytest_collection_modifyitems(config, items):
    if os.environ.get("NDSCATTER_FULL") == "1":
        return
    chosen = {item.nodeid for item in items if _runs(item)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]


def _runs(item):
    if item.get_closest_marker("long"):
        return False
    sampled = item.get_closest_marker("sampled")
    return sampled is None or zlib.crc32(item.name.encode()) % sampled.args[0] == 0
