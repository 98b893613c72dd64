"""The table of `mockube status` counts the objects that have events, whatever is not simulated of them."""

import pytest

from mockube.cli.status import assumed_rows, not_simulated_rows
from mockube.clusters.health import ClusterHealth

_IMAGE = (
    "default/web: the image example/web is not simulated: the container runs without it until it is stopped"
)
_HOST = "default/web: curl of example.com is not simulated: the container ends with exit code 6 without it"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ((_IMAGE,), "parts of 1 object: "),
        ((_IMAGE, _HOST), "parts of 1 object: "),
        ((_IMAGE, _HOST.replace("web", "db")), "parts of 2 objects: "),
    ],
)
def test_objects_with_parts_that_are_not_simulated_are_counted(lines, text):
    hint = "kubectl get events -A --field-selector reason=NotSimulated"
    assert not_simulated_rows(ClusterHealth(not_simulated=lines)) == [("not simulated", text + hint)]


def test_cluster_in_which_all_is_simulated_has_no_row():
    assert not_simulated_rows(ClusterHealth()) == []


def test_pods_that_are_ready_by_assumption_are_counted():
    other = _IMAGE.replace("web", "db")
    text = "the image example/web is not simulated: the container runs without it until it is stopped"
    hint = "mockube why pod/web -n default"
    assert assumed_rows(ClusterHealth(assumed=(_IMAGE, other))) == [
        ("ready by assumption", f"2 pods are, such as default/web: {text}: {hint}")
    ]
    assert assumed_rows(ClusterHealth()) == []
