"""Tests with the marker `release` install programs of others, compile their libraries, or start a dozen clusters: a change cannot wait so long.

`make test-all` runs them, and so does a run that names files or tests. `make test` counts them as deselected.
"""

import os

import pytest

MARKER = "release"


def pytest_collection_modifyitems(config, items):
    if os.environ.get("MOCKUBE_FULL_SIZE") or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    left_out = [item for item in items if item.get_closest_marker(MARKER)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker(MARKER)]
