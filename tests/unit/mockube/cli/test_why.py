"""The text of explanations on a terminal."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import NO_RESOURCE_MESSAGE, Details, NotFound, not_found
from mockube.cli.why import MAX_NODES, lines_of
from mockube.client.resources import Key
from mockube.control_objects import explain_object
from mockube.failure import Missing

HOSTILE = "<img src=x onerror=alert(1)>\n\x1b[31m::error::"
STATUS = {
    "state": "Explained",
    "cause": "no node takes it",
    "object": {"kind": "Pod", "name": "web"},
    "evidence": [
        {"text": "0/1 nodes", "source": "condition PodScheduled", "time": "12:00"},
        {"text": "alone"},
    ],
    "nodes": [{"node": "a", "plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "detail": "free 1"}],
    "related": [{"object": {"kind": "Pod", "name": "b"}, "cause": "waits"}],
    "origins": [
        {
            "object": {"kind": "Secret", "name": "db"},
            "field": "data.password",
            "writes": [
                {
                    "revision": 9,
                    "type": "MODIFIED",
                    "time": "2026-01-31T12:00:00.5Z",
                    "user": "ada",
                    "program": "kubectl-edit",
                    "verb": "patch",
                    "before": '"***"',
                }
            ],
            "command": "mockube log secret/db --field data.password",
        },
        {
            "object": {"kind": "Service", "name": "web"},
            "writes": [{"revision": 8, "type": "DELETED"}],
            "command": "mockube log service/web",
        },
        {"object": {"kind": "Node", "name": "a"}},
    ],
    "remedies": [{"text": "Do it:", "command": "kubectl x"}, {"text": "Or that."}],
    "unreadable": ["list secrets"],
    "omitted": {"evidence": 3},
}


def test_write_of_managed_fields_says_that_it_is_from_these():
    write = {"revision": 0, "type": "MODIFIED", "time": "2026-01-31T12:00:00Z", "program": "kubectl-edit"}
    write |= {"verb": "update", "source": "managedFields", "after": "3"}
    origin = {"object": {"kind": "Pod", "name": "a"}, "field": "spec.x", "writes": [write]}
    status = {"object": {"kind": "Pod", "name": "a"}, "state": "Explained", "cause": "x", "origins": [origin]}
    assert "    2026-01-31T12:00:00Z managedFields (update, kubectl-edit): 3" in [*lines_of(status)]


def test_cause_is_first_then_evidence_then_remedies():
    assert [*lines_of(STATUS)] == [
        "pod/web: no node takes it",
        "",
        "Evidence:",
        "  0/1 nodes  (condition PodScheduled, 12:00)",
        "  alone",
        "",
        "NODE   PLUGIN             REASON             DETAIL\na      NodeResourcesFit   Insufficient cpu   free 1",
        "",
        "Related:",
        "  pod/b: waits",
        "",
        "Who wrote it:",
        "  data.password of secret/db:",
        '    2026-01-31T12:00:00Z ada (patch, kubectl-edit): "***" -> (not set)',
        "    mockube log secret/db --field data.password",
        "  service/web:",
        "    a user who is not recorded: deleted",
        "    mockube log service/web",
        "",
        "What would change it:",
        "  Do it:",
        "    kubectl x",
        "  Or that.",
        "",
        "Not readable by you, so not considered:",
        "  list secrets",
        "evidence: 3 more are left out.",
    ]


def test_unknown_cause_is_printed_as_not_known():
    status = {"state": "Unknown", "cause": "who knows", "object": {"kind": "Pod", "name": "web"}}
    assert [*lines_of(status)] == ["pod/web: not known: who knows"]


def test_table_of_many_nodes_is_short():
    nodes = [{"node": f"n{number}", "plugin": "p", "reason": "r"} for number in range(MAX_NODES + 5)]
    assert [*lines_of({**STATUS, "nodes": nodes})][7] == "5 more rows: -o yaml"


def test_hostile_values_are_text():
    status = {
        "state": "Explained",
        "cause": HOSTILE,
        "object": {"kind": HOSTILE, "name": HOSTILE},
        "evidence": [{"text": HOSTILE, "source": HOSTILE, "time": HOSTILE}],
        "nodes": [{"node": HOSTILE, "plugin": HOSTILE, "reason": HOSTILE}],
        "related": [{"object": {"kind": HOSTILE, "name": HOSTILE}, "cause": HOSTILE}],
        "remedies": [{"text": HOSTILE, "command": HOSTILE}],
        "unreadable": [HOSTILE],
    }
    for text in lines_of(status):
        for line in text.split("\n"):
            assert line.isprintable()
            assert not line.startswith("::")


class FakeClient:
    """Answers every Explanation with an error."""

    def __init__(self, error):
        self._error = error

    def with_timeout(self, _):
        return self

    async def create(self, *_):
        raise self._error


async def test_object_that_does_not_exist_is_missing():
    error = not_found(GroupResource("", "pods"), "web")
    with pytest.raises(Missing, match='pods "web" not found'):
        await explain_object(FakeClient(error), "v1", "Pod", Key("default", "web"))


async def test_server_without_control_is_reported():
    with pytest.raises(Missing, match="the server has no control"):
        await explain_object(
            FakeClient(NotFound(NO_RESOURCE_MESSAGE, Details())), "v1", "Pod", Key("", "web")
        )
