"""Queries in stages give jq's results."""

import pytest

from mockube.kubelet.stages.query import StageError, compile_query

POD = {
    "metadata": {"annotations": {"a.b/c": "5s"}, "finalizers": ["one", "two"]},
    "spec": {"hostNetwork": True},
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "False"}],
        "containerStatuses": [{"state": {"running": {"startedAt": "now"}}}, {"state": {}}],
    },
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(".", [POD], id="everything"),
        pytest.param(".status.phase", ["Running"], id="a path"),
        pytest.param(".status.none.such", [None], id="path of a missing field"),
        pytest.param('.metadata.annotations["a.b/c"]', ["5s"], id="a key in brackets"),
        pytest.param('.metadata.annotations."a.b/c"', ["5s"], id="a key in quotes"),
        pytest.param(".metadata.finalizers.[]", ["one", "two"], id="each"),
        pytest.param(".metadata.finalizers[1]", ["two"], id="an item"),
        pytest.param(".metadata.finalizers[-3]", [None], id="no item"),
        pytest.param(".metadata.finalizers", [["one", "two"]], id="a list"),
        pytest.param('.status.conditions.[] | select( .type == "Ready" ) | .status', ["True"], id="selected"),
        pytest.param('.status.conditions[] | select(.type == "None") | .status', [], id="none selected"),
        pytest.param('.status.conditions[] | select(.type != "Ready") | .status', ["False"], id="the others"),
        pytest.param(
            '.status.conditions[]|select(.type=="Ready" and .status=="False" or .type=="Initialized")|.type',
            ["Initialized"],
            id="and, or",
        ),
        pytest.param(
            ".status.containerStatuses.[].state.running.startedAt",
            ["now", None],
            id="iteration over null elements",
        ),
        pytest.param("select(.spec.hostNetwork) | .spec.hostNetwork", [True], id="truth"),
        pytest.param("select(.spec.hostNetwork == false) | .spec", [], id="untruth"),
        pytest.param("select(.spec.hostPID == null) | .status.phase", ["Running"], id="null"),
        pytest.param(".status.initContainerStatuses.[]", None, id="iteration over null fails"),
        pytest.param(".status.phase.name", None, id="a field of a text fails"),
        pytest.param(".status.phase[0]", None, id="an item of a text fails"),
        pytest.param(".status.initContainerStatuses[]?", [], id="fails in silence"),
    ],
)
def test_stage_queries(query, expected):
    assert compile_query(query)(POD) == expected


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("map(.a)", "'map'"),
        (".a + 1", "'+ 1'"),
        (".a | length", "'length'"),
        ("select(.a", "'the end'"),
        (".a )", "')'"),
        ("", "'the end'"),
        (".[.a]", "'.a'"),
    ],
)
def test_unsupported_query_is_named(query, problem):
    with pytest.raises(StageError) as raised:
        compile_query(query)
    assert problem in str(raised.value)
    assert f"{query!r}" in str(raised.value)
