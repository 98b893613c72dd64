"""Which controllers `--controllers` means."""

import pytest

from mockube.controller_manager.config.selection import is_wanted, missing, unknown

KNOWN = {"deployment-controller", "replicaset-controller", "kube-scheduler"}


@pytest.mark.parametrize(
    ("wanted", "by_default", "expected"),
    [
        pytest.param("*", True, True, id="all"),
        pytest.param("*", False, False, id="all that run by default"),
        pytest.param("*,deployment-controller", False, True, id="and one more"),
        pytest.param("*,-deployment-controller", True, False, id="all but one"),
        pytest.param("-deployment-controller,*", True, False, id="in another order"),
        pytest.param("deployment-controller", True, True, id="one alone"),
        pytest.param("replicaset-controller", True, False, id="another one alone"),
        pytest.param("deployment", True, True, id="by its short name"),
        pytest.param("*,-deployment", True, False, id="not by its short name"),
        pytest.param("deployment-controller,-deployment-controller", True, True, id="the first counts"),
    ],
)
def test_is_wanted(wanted, by_default, expected):
    found = is_wanted("deployment-controller", wanted.split(","), by_default=by_default)
    assert found is expected


def test_names_that_nobody_has():
    assert unknown(["*", "-deployment", "kube-scheduler", "-tokencleaner", "a", "-b"], KNOWN) == ["a", "b"]


def test_what_upstream_has_and_is_asked_for_is_told():
    wanted = ["*", "bootstrapsigner", "-ttl-controller", "deployment", "node-ipam-controller"]
    assert missing(wanted, KNOWN) == ["bootstrap-signer-controller", "node-ipam-controller"]
