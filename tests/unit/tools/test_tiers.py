"""A test is in one tier, by its marker and its folder."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.tiers import TIERS, pytest_ignore_collect, tier_of

REPOSITORY = Path(__file__).parents[3]


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
        pytest.param("tests/unit/etcd/test_a.py::test_a", ("timed",), "rest", id="processor time"),
        pytest.param("tests/unit/etcd/test_a.py::test_a", ("thorough", "release"), None, id="release"),
    ],
)
def test_marker_and_folder_decide(test, markers, tier):
    assert tier_of(Item(test, markers)) == tier


def test_second_tier_contains_the_first():
    assert TIERS["check"] < TIERS["test"]


@pytest.mark.parametrize(
    ("tier", "module", "is_left_out"),
    [
        pytest.param("rest", "tests/unit/tools/test_tiers.py", True, id="unit test"),
        pytest.param("rest", "tests/unit/apimachinery/test_formats.py", False, id="processor time"),
        pytest.param("rest", "tests/cli/test_up.py", False, id="whole cluster"),
        pytest.param("rest", "tests/cli/test_command.py", True, id="whole cluster of make test"),
        pytest.param("rest", "tests/cli", False, id="folder"),
        pytest.param("test", "tests/unit/etcd/test_a.py", False, id="unit test of make test"),
        pytest.param(
            "test", "tests/unit/apimachinery/test_formats.py", False, id="other tests beside processor time"
        ),
        pytest.param("test", "tests/cli/test_up.py", True, id="whole cluster of the rest"),
        pytest.param(None, "tests/cli/test_up.py", False, id="named"),
    ],
)
def test_modules_of_other_tiers_are_not_imported(monkeypatch, tier, module, is_left_out):
    monkeypatch.delenv("MOCKUBE_FULL_SIZE", raising=False)
    config = SimpleNamespace(
        rootpath=REPOSITORY,
        getoption=lambda name: {"--tier": tier}[name],
        args_source=pytest.Config.ArgsSource.ARGS,
    )
    assert bool(pytest_ignore_collect(config.rootpath / module, config)) is is_left_out
