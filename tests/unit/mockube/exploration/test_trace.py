import asyncio
from contextlib import asynccontextmanager

import orjson
import pytest

from mockube.apimachinery.secrets import MASK
from mockube.apimachinery.status import NotFound
from mockube.client.discovery import DiscoveredResource
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.verbs import ObjectList
from mockube.component_base.clock import SteppedClock
from mockube.exploration.trace import ArrangedObjects, Trace, following
from mockube.objects.resource_names import ResourceNames
from tests.support.instant_clock import InstantClock

OPERATOR = "system:serviceaccount:default:operator"
PERSON = "kubernetes-admin"
CHILD = ("ConfigMap", "default", "child")
LOCK = "control-plane.alpha.kubernetes.io/leader"


def new_trace(objects=()):
    return Trace(clock=InstantClock(), operator=OPERATOR, objects=dict(objects))


def change(type_, patch=None, name="child", user=OPERATOR, kind="ConfigMap", namespace="default", **fields):
    about = {"apiVersion": "v1", "kind": kind, "name": name, "namespace": namespace}
    spec = {"revision": 7, "type": type_, "object": about, "author": {"user": user}, "patch": patch, **fields}
    return {"spec": spec}


def added(**fields):
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "namespace": "default"}}
    return change("ADDED", [{"op": "replace", "path": "", "value": tree}], **fields)


def request(verb="create", resource="configmaps", group="", **status):
    spec = {"verb": verb, "resource": resource, "group": group, "namespace": "default", "name": "a"}
    return {"spec": spec, "status": {"code": 201, **status}}


def test_objects_follow_their_changes():
    trace = new_trace()
    trace.add_change(added())
    trace.add_change(change("MODIFIED", [{"op": "add", "path": "/data", "value": {"a": "1"}}]))
    assert trace.objects[CHILD]["data"] == {"a": "1"}
    assert (trace.changes[1].before, trace.changes[1].paths) == (trace.changes[0].after, ["/data"])
    trace.add_change(change("DELETED"))
    assert CHILD not in trace.objects
    assert trace.touched == {CHILD}


@pytest.mark.parametrize(
    ("verb", "body", "is_conditional"),
    [
        pytest.param("update", {"metadata": {"name": "a"}}, True, id="update"),
        pytest.param("create", {"metadata": {"name": "a"}}, False, id="create"),
        pytest.param("patch", {"data": {"a": "1"}}, False, id="merge-patch"),
        pytest.param("patch", {"metadata": {"resourceVersion": "7"}}, True, id="merge-patch-of-a-version"),
        pytest.param(
            "patch", [{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}], False, id="tested"
        ),
        pytest.param(
            "patch",
            [{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}],
            True,
            id="replaced",
        ),
        pytest.param("patch", None, False, id="body-left-out"),
    ],
)
def test_write_that_names_a_version_is_conditional(verb, body, is_conditional):
    trace, tree = new_trace(), request(verb)
    trace.add_request({**tree, "spec": {**tree["spec"], "body": body}})
    assert trace.requests[0].is_conditional == is_conditional


def test_lock_of_an_older_operator_is_no_object_that_it_makes():
    trace = new_trace()
    trace.add_request(request("update"))
    metadata = {"name": "a", "namespace": "default", "annotations": {LOCK: "{}"}}
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    renewed = [{"op": "replace", "path": "/metadata/annotations", "value": {LOCK: "{1}"}}]
    trace.add_change(change("ADDED", [{"op": "replace", "path": "", "value": tree}], name="a"))
    trace.add_change(change("MODIFIED", renewed, name="a"))
    trace.add_change(change("DELETED", name="a"))
    trace.add_request(request("update"))
    trace.add_request({"spec": {**request("update")["spec"], "name": "b"}})
    assert (trace.changes, trace.objects) == ([], {})
    assert [each.is_write for each in trace.requests] == [False, False, True]
    assert trace.locks == {("ConfigMap", "default", "a")}


def test_object_whose_patch_is_left_out_is_known_by_its_name():
    trace = new_trace({CHILD: {"data": {"a": "1"}}})
    trace.add_change(change("MODIFIED", patchOmitted="it is too large"))
    assert trace.objects[CHILD] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "child", "namespace": "default"},
    }


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param({"kind": "Event"}, id="event"),
        pytest.param({"kind": "Node", "namespace": ""}, id="heartbeat"),
        pytest.param({"name": "mockube-kubelets", "namespace": "kube-system"}, id="address of kubelets"),
    ],
)
def test_heartbeats_are_no_activity(noise):
    trace = new_trace()
    trace.add_change(change("MODIFIED", [], **noise))
    assert not trace.changes
    assert not trace.gaps


@pytest.mark.parametrize(
    ("sent", "is_activity"),
    [
        pytest.param(request(), True, id="write"),
        pytest.param(request("list"), False, id="read"),
        pytest.param(request("update", "leases", "coordination.k8s.io"), False, id="lease"),
        pytest.param(request("create", "events"), False, id="event"),
    ],
)
def test_writes_are_activity(sent, is_activity):
    trace = new_trace()
    trace.add_request(sent)
    assert trace.request_count() == 1
    assert bool(trace.gaps) is is_activity


def test_pause_of_the_scenario_is_no_gap():
    clock = SteppedClock()
    trace = Trace(clock=clock, operator=OPERATOR, objects={})
    trace.add_change(added())
    clock.advance(60)
    trace.note("ConfigMap/site is deleted")
    clock.advance(1)
    trace.add_change(change("DELETED"))
    assert trace.gaps == [0, 1]


def test_changes_before_the_run_are_not_of_it():
    trace = Trace(clock=InstantClock(), operator=OPERATOR, objects={}, first_revision=7)
    trace.add_change(added())
    assert ([*trace.objects], trace.changes, trace.gaps) == ([CHILD], [], [])
    trace.add_change(change("MODIFIED", [{"op": "add", "path": "/data", "value": {"a": "1"}}], revision=8))
    assert [each.revision for each in trace.changes] == [8]


def test_objects_of_built_in_controllers_are_counted():
    trace = new_trace()
    trace.add_change(added(user="system:kube-controller-manager"))
    assert trace.counted == {CHILD}
    trace = new_trace()
    trace.add_change(added())
    assert trace.counted == frozenset()


def test_lines_are_in_the_order_of_time():
    trace = new_trace()
    trace.note("step 1: apply")
    trace.add_request(request("list"))
    trace.add_request(request(code=409, message="it exists"))
    trace.add_request(request("get", code=0, isCut=True))
    trace.add_change(change("MODIFIED", [{"op": "add", "path": "/data", "value": 1}]))
    assert [each.line() for each in trace.events()] == [
        "step 1: apply",
        "the operator: create configmaps a -> 409 it exists",
        "the operator: get configmaps a -> the connection is cut",
        "MODIFIED ConfigMap child in default by the operator: /data",
    ]


def test_request_whose_change_is_there_is_no_event():
    trace = new_trace()
    for name in ("1", "2"):
        sent = request()
        sent["spec"]["auditID"] = name
        trace.add_request(sent)
    made = added()
    made["spec"]["author"]["auditID"] = "1"
    trace.add_change(made)
    assert [each.line() for each in trace.events()] == [
        "the operator: create configmaps a -> 201",
        "ADDED ConfigMap child in default by the operator",
    ]
    assert trace.events()[0].audit_id == "2"


def test_change_has_the_values_of_fields_but_not_those_of_secrets():
    trace = new_trace()
    trace.add_change(added())
    trace.add_change(change("MODIFIED", [{"op": "add", "path": "/data", "value": {"a": "1", "b": "2"}}]))
    assert trace.changes[-1].line().endswith('by the operator: data.a: "1"; data.b: "2"')
    fields = {"kind": "Secret", "name": "s"}
    metadata = {"name": "s", "namespace": "default"}
    tree = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": MASK}}
    trace.add_change(change("ADDED", [{"op": "replace", "path": "", "value": tree}], **fields))
    trace.add_change(change("MODIFIED", [{"op": "replace", "path": "/data/a", "value": MASK}], **fields))
    assert trace.changes[-1].line().endswith("by the operator: /data/a")


class FakeStream:
    def __init__(self, lines):
        self._lines = lines

    async def chunks(self):
        for line in self._lines:
            yield orjson.dumps(line) + b"\n"


class FakeClient:
    """A client whose watches of Changes yield these events and end; the others go on without an event."""

    def __init__(self, *events, whole=None):
        self._events, self._whole = events, whole

    async def list(self, *_, **__):
        return ObjectList([], "1", "")

    async def raw(self, _, path):
        if self._whole is None or "resourceVersion=7&resourceVersionMatch=Exact" not in path:
            raise NotFound("it is gone")
        return {"items": [self._whole]}

    @asynccontextmanager
    async def watch(self, kind, *_, **__):
        if kind.plural != "changes":
            await asyncio.Event().wait()
        yield FakeStream(self._events)


async def followed(client):
    arranged = ArrangedObjects(objects={}, revision=1, request_version="1", seconds=0.0)
    async with following(client, InstantClock(), arranged, 1, OPERATOR) as found:
        while not found.problem:
            found.arrived.clear()
            await found.arrived.wait()
    return found


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        pytest.param([], "the watch ended", id="end"),
        pytest.param(
            [{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}],
            "too old",
            id="error",
        ),
        pytest.param(
            [
                {"type": "ADDED", "object": change("MODIFIED", patchOmitted="it is too large")},
                {
                    "type": "ADDED",
                    "object": change("MODIFIED", [{"op": "replace", "path": "/data/x", "value": "1"}]),
                },
            ],
            "data",
            id="patch of an object that is not known",
        ),
    ],
)
async def test_run_that_cannot_be_followed_has_a_problem(events, problem, monkeypatch):
    monkeypatch.setattr(ResourceNames, "find_kind", config_maps)
    found = await followed(FakeClient(*events))
    assert found.problem.startswith("changes cannot be followed: ")
    assert problem in found.problem


async def test_object_whose_patch_is_left_out_is_read(monkeypatch):
    monkeypatch.setattr(ResourceNames, "find_kind", config_maps)
    whole = {"metadata": {"name": "child", "namespace": "default"}, "data": {"x": "long"}}
    omitted = {"type": "ADDED", "object": change("MODIFIED", patchOmitted="it is too large")}
    found = await followed(FakeClient(omitted, whole=whole))
    assert found.objects[CHILD]["data"] == {"x": "long"}


async def config_maps(*_):
    return DiscoveredResource(resource=CONFIG_MAPS, verbs=frozenset(), subresources=frozenset())


def labelled(path, value, user=PERSON, op="add"):
    patch = {"op": op, "path": f"/metadata/{path}", **({} if op == "remove" else {"value": value})}
    return change("MODIFIED", [patch], user=user)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param([labelled("labels", {"a": "1"})], {"labels": {"a": "1"}}, id="a person's"),
        pytest.param([labelled("labels", {"a": "1"}, OPERATOR)], {}, id="the operator's"),
        pytest.param(
            [labelled("annotations", {"a": "1"}), labelled("annotations/a", "2", OPERATOR)],
            {"annotations": {"a": "1"}}, id="changed by the operator",
        ),
        pytest.param(
            [labelled("annotations", {"a": "1"}, OPERATOR), labelled("annotations/b", "2")],
            {"annotations": {"b": "2"}}, id="both",
        ),
        pytest.param(
            [labelled("labels", {"a": "1", "b": "2"}), labelled("labels/a", None, op="remove")],
            {"labels": {"b": "2"}}, id="removed by a person",
        ),
        pytest.param(
            [labelled("finalizers", ["a/x"]), labelled("finalizers", ["a/x", "b/y"], OPERATOR)],
            {"finalizers": ["a/x"]}, id="finalizers",
        ),
        pytest.param(
            [labelled("labels", {"a": "1"}), change("DELETED"), added(user=PERSON)], {}, id="created anew",
        ),
    ],
)  # fmt: skip
def test_metadata_that_others_have_set(changes, expected):
    trace = new_trace()
    trace.add_change(added(user=PERSON))
    for each in changes:
        trace.add_change(each)
    assert trace.metadata_of_others(CHILD) == expected


def test_metadata_of_an_object_that_was_there_before():
    tree = {"metadata": {"name": "child", "labels": {"a": "1"}, "uid": "u"}}
    trace = new_trace({CHILD: tree})
    assert trace.metadata_of_others(CHILD) == {"labels": {"a": "1"}}


@pytest.mark.parametrize(("version", "is_seen"), [("7", True), ("8", False)])
def test_version_is_seen_when_its_changes_have_arrived(version, is_seen):
    trace = new_trace()
    trace.add_change(added())
    assert trace.has_seen({"metadata": {"resourceVersion": version}}) is is_seen


def test_fault_that_begins_with_an_event_has_taken_place_when_it_has_come():
    trace = new_trace()
    spec = {"match": {}, "hold": {"fromEvent": {"types": ["ADDED"]}}}
    fault = {"metadata": {"name": "f"}, "spec": spec, "status": {"hits": 2}}
    trace.add_fault(fault)
    assert trace.hits == {"f": 0}
    trace.add_fault({**fault, "status": {"hits": 2, "event": {"revision": 7}}})
    assert (trace.hits, trace.event_revisions) == ({"f": 1}, {"f": 7})
