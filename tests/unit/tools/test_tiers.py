"""A test is in one tier, by its marker and its folder."""

import pytest

from tests.support.tiers import TIERS, tier_of


class Item:
    def __init__(self, nodeid, markers):
        self.nodeid = nodeid
        self._markers = markers

    def get_closest_marker(self, name):
        return name if name in self._markers else None


@pytest.mark.parametrize(
    ("test", "markers", "tier"),
    [
        pytest.param("tests/unit/etcd/test_a.py::test_a", (), "check", id="unit test"),
        pytest.param("tests/packs/kruise/unit/test_a.py::test_a", (), "check", id="unit test of a pack"),
        pytest.param("tests/unit/etcd/test_a.py::test_a", ("thorough",), "test", id="expensive unit test"),
        pytest.param("tests/unit/etcd/test_a.py::test_a[etcd]", ("etcd",), "test", id="real etcd"),
        pytest.param("tests/integration/test_a.py::test_a", (), "test", id="integration test"),
        pytest.param("tests/clients/test_a.py::test_a", (), "rest", id="other programs"),
        pytest.param("tests/unit/etcd/test_a.py::test_a", ("thorough", "release"), None, id="release"),
    ],
)
def test_marker_and_folder_decide(test, markers, tier):
    assert tier_of(Item(test, markers)) == tier


def test_second_tier_contains_the_first():
    assert TIERS["check"] < TIERS["test"]
