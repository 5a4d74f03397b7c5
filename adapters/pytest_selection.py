"""Hooks of pytest that select the tests of the adapters. A conftest.py imports the hooks.

Two markers leave out tests, unless the environment variable NDSCATTER_FULL is 1:

- `long` leaves out a test, or one case of a test.
- `sampled(n)` leaves out all but one of n cases of the test. The checksums of the names of the cases
  decide, so the same cases run each time.
"""

import math
import os
import zlib
from collections import defaultdict


def pytest_configure(config):
    config.addinivalue_line("markers", "long: a test that runs only with NDSCATTER_FULL=1")
    config.addinivalue_line("markers", "sampled(n): one of n cases runs, or all with NDSCATTER_FULL=1")


def pytest_collection_modifyitems(config, items):
    if os.environ.get("NDSCATTER_FULL") == "1":
        return
    cases = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("long"):
            cases[item.parent.nodeid, item.originalname].append(item)
    chosen = {item.nodeid for of_a_test in cases.values() for item in _sample(of_a_test)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]


def _sample(cases):
    """Return the cases of a test that run. `sampled` marks all cases of a test, or none."""
    sampled = cases[0].get_closest_marker("sampled")
    if sampled is None:
        return cases
    by_checksum = sorted(cases, key=lambda case: zlib.crc32(case.name.encode()))
    return by_checksum[: math.ceil(len(cases) / sampled.args[0])]
