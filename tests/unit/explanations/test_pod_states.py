"""What is said of a pod in each of its states, of what it reads, and of what the others assume."""

import pytest

from mockube.explanations.catalog import explain
from mockube.explanations.commands import kind_argument, log_command
from mockube.explanations.completion import completed
from mockube.explanations.explanation import Explanation, LastWrite, Origin, Remedy, status_of
from mockube.explanations.facts import FAULTS, DryRun
from tests.support.explained import (
    condition,
    event,
    facts_of,
    node_of,
    pod_of,
    resource_of,
    thing,
)
from tests.support.told import evidence_of, told

OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-db", "controller": True}
OF_DB = {"ownerReferences": [OWNER]}
AGAIN = "- kubectl -n default delete pod/web"
INITIALIZED, READY = condition("Initialized", "True"), condition("Ready", "True")


def status_with(*containers, init=(), conditions=(INITIALIZED,), phase="Pending", **fields):
    return {
        "phase": phase,
        "containerStatuses": [*containers],
        "initContainerStatuses": [*init],
        "conditions": [*conditions],
        **fields,
    }


def container(name="c", *, ready=False, restarts=0, last=None, **state):
    last_state = {"terminated": last} if last else {}
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state, "lastState": last_state}


def ended(code=1, **fields):
    return {"exitCode": code, "reason": "Error" if code else "Completed", **fields}


RUNS = container(ready=True, running={})
INIT = {"initContainers": [{"name": "i", "image": "x"}, {"name": "j", "image": "x"}]}
SIDECAR = {"initContainers": [{"name": "i", "image": "x", "restartPolicy": "Always"}]}
CREATING = {"waiting": {"reason": "PodInitializing"}}
DISRUPTED = condition("DisruptionTarget", "True", "PreemptionByScheduler", "m")
STALE = condition("Ready", "False", "ContainersNotReady", "not ready")
SET_GATE = """- kubectl -n default patch pod/web --subresource=status -p '{"status":{"conditions":[{"type":"x/y","status":"True"}]}}'"""
CUT = {"mockube.dev/stop-heartbeats": "true"}


def lost_node(**annotations):
    found = node_of(ready="Unknown")
    return {**found, "metadata": {**found["metadata"], "annotations": annotations}}


CONNECT = """- kubectl patch node/a --type=merge -p '{"metadata":{"annotations":{"mockube.dev/stop-heartbeats":null}}}'"""

PODS = {
    "succeeded": (pod_of(status={"phase": "Succeeded"}), [], None),
    "evicted": (
        pod_of(status={"phase": "Failed", "reason": "Evicted", "message": "memory"}),
        [],
        ["Explained: the pod was evicted: memory", AGAIN],
    ),
    "evicted, with a controller": (
        pod_of(status={"phase": "Failed", "reason": "Evicted", "message": "memory"}, metadata=OF_DB),
        [],
        ["Explained: the pod was evicted: memory"],
    ),
    "failed for a reason": (
        pod_of(status={"phase": "Failed", "reason": "DeadlineExceeded", "message": "m"}, metadata=OF_DB),
        [],
        ["Explained: the pod failed: DeadlineExceeded: m"],
    ),
    "failed for a reason without a message": (
        pod_of(status={"phase": "Failed", "reason": "NodeLost"}, metadata=OF_DB),
        [],
        ["Explained: the pod failed: NodeLost"],
    ),
    "failed by a disruption": (
        pod_of(status={"phase": "Failed", "conditions": [DISRUPTED]}),
        [],
        ["Explained: the pod was disrupted: PreemptionByScheduler: m", AGAIN],
    ),
    "failed, and a disruption did not happen": (
        pod_of(status={"phase": "Failed", "conditions": [{**DISRUPTED, "status": "False"}]}),
        [],
        ["Unknown: the pod failed, and no container says why"],
    ),
    "failed, and its containers have succeeded": (
        pod_of(status=status_with(container(terminated=ended(0)), phase="Failed")),
        [],
        ["Unknown: the pod failed, and no container says why"],
    ),
    "its node does not exist": (
        pod_of(nodeName="gone"),
        [],
        [
            "Explained: the pod is bound to the node gone, which does not exist",
            "- kubectl -n default delete pod/web --force",
            "@ node/gone",
        ],
    ),
    "its node does not report": (
        pod_of(status=status_with(RUNS, conditions=(INITIALIZED, STALE))),
        [lost_node()],
        [
            "Explained: the kubelet of a has stopped reporting, so nothing is known of the containers: KubeletNotReady",
            "- kubectl describe node a",
        ],
    ),
    "its node does not report, and was ready": (
        pod_of(status=status_with(RUNS, conditions=(INITIALIZED, READY), phase="Running")),
        [lost_node()],
        ["NoProblem: the pod is ready"],
    ),
    "its node is cut off": (
        pod_of(status=status_with(RUNS, conditions=(INITIALIZED, STALE))),
        [lost_node(**CUT)],
        [
            "Explained: the node a is disconnected by the annotation mockube.dev/stop-heartbeats",
            CONNECT,
            '@ node/a metadata.annotations["mockube.dev/stop-heartbeats"]',
        ],
    ),
    "an init container runs": (
        pod_of(
            status=status_with(
                init=[container("i", terminated=ended(0)), container("j", running={})], conditions=()
            ),
            **INIT,
        ),
        [],
        [
            "Explained: the init container j (2 of 2) runs and has not ended: the containers wait for it",
            "- kubectl -n default logs web -c j",
        ],
    ),
    "a sidecar runs, and a later init container does, too": (
        pod_of(
            status=status_with(
                init=[{**container("i", running={}), "started": True}, container("j", running={})],
                conditions=(),
            ),
            initContainers=[*SIDECAR["initContainers"], {"name": "j", "image": "x"}],
        ),
        [],
        [
            "Explained: the init container j (2 of 2) runs and has not ended: the containers wait for it",
            "- kubectl -n default logs web -c j",
        ],
    ),
    "its kubelet has reported nothing": (
        pod_of(status={"conditions": [INITIALIZED]}),
        [],
        ["Unknown: the kubelet of a has not reported the pod's containers"],
    ),
    "ready": (
        pod_of(status=status_with(RUNS, conditions=(INITIALIZED, READY))),
        [],
        ["NoProblem: the pod is ready"],
    ),
    "a readiness gate": (
        pod_of(
            status=status_with(RUNS, conditions=(INITIALIZED, condition("a/b", "True"))),
            readinessGates=[{"conditionType": "a/b"}, {"conditionType": "x/y"}],
        ),
        [],
        [
            "Explained: the containers are ready, but the readiness gates are not: x/y",
            SET_GATE,
            "@ pod/web spec.readinessGates",
        ],
    ),
    "not ready, and all containers are": (
        pod_of(status=status_with(RUNS)),
        [],
        ["Unknown: all containers are ready, but the pod is not"],
    ),
    "one container has ended as it should": (
        pod_of(status=status_with(container(terminated=ended(0))), restartPolicy="Never"),
        [],
        ["Unknown: all containers are ready, but the pod is not"],
    ),
}


@pytest.mark.parametrize(("pod", "objects", "lines"), PODS.values(), ids=PODS)
def test_pod(pod, objects, lines):
    found = told(explain(resource_of(pod), pod, facts_of(pod, *(objects or [node_of()]))))
    assert found == lines or (lines is None and found[0].startswith("NoProblem: "))


OLD, RECENT = "2026-01-31T00:00:00Z", "2026-01-31T11:59:00Z"


@pytest.mark.parametrize(
    ("last", "restarts", "state", "evidence"),
    [
        (ended(finishedAt=OLD), 2, "NoProblem", ["no message", "the container c has been restarted 2 times"]),
        (ended(), 2, "NoProblem", ["no message", "the container c has been restarted 2 times"]),
        (None, 2, "NoProblem", ["no message"]),
        (ended(finishedAt=RECENT), 0, "NoProblem", ["no message"]),
    ],
    ids=["long ago", "at an unknown time", "no end is recorded", "no restart"],
)
def test_ready_pod_with_restarts(last, restarts, state, evidence):
    status = status_with(
        container(ready=True, restarts=restarts, last=last, running={}), conditions=(INITIALIZED, READY)
    )
    pod = pod_of(status=status)
    found = explain(resource_of(pod), pod, facts_of(pod, node_of()))
    assert (found.state, evidence_of(found)) == (state, evidence)


def test_ready_pod_whose_container_has_ended_a_minute_ago():
    status = status_with(
        container(ready=True, restarts=1, last=ended(finishedAt=RECENT), running={}),
        conditions=(INITIALIZED, READY),
    )
    pod = pod_of(status=status)
    found = explain(resource_of(pod), pod, facts_of(pod, node_of()))
    assert found.cause.startswith("the pod is ready, but ")


@pytest.mark.parametrize(
    "reason", ["Evicted", "Preempted", "TaintManagerEviction", "NodeNotReady", "DeadlineExceeded"]
)
def test_event_of_the_end_of_a_pod_is_evidence(reason):
    pod = pod_of(status={"phase": "Failed", "reason": "DeadlineExceeded"})
    found = explain(
        resource_of(pod), pod, facts_of(pod, node_of(), event(pod, reason, "m"), event(pod, "Other", "n"))
    )
    assert evidence_of(found) == ["the phase is Failed", "DeadlineExceeded: without a message", "m"]


# --- faults

NOT_READY = condition("Ready", "Unknown", "NodeStatusUnknown", "m")


def fault(match=(), status=(), **effects):
    spec = {"match": dict(match), **effects}
    return thing(
        "Fault", "f", api_version="control.mockube.dev/v1alpha1", namespace="", spec=spec, status=dict(status)
    )


REMOVE = ["- mockube fault remove f", "@ fault/f"]


@pytest.mark.parametrize(
    ("obj", "lines"),
    [
        (fault(delay={"seconds": 1}), ["Explained: it harms all requests of users: delay", *REMOVE]),
        (
            fault({"verbs": "get"}, error={}, delay={}),
            ["Explained: it harms requests that match verbs get: delay, error", *REMOVE],
        ),
        (fault({"node": "a"}, partition={}), ["Explained: it has cut the node a off", *REMOVE]),
        (
            fault({"verbs": "get"}, {"isExhausted": True}, error={}),
            ["NoProblem: it has harmed as many requests as it may"],
        ),
    ],
    ids=["all requests", "some requests", "partition", "exhausted"],
)
def test_fault(obj, lines):
    assert told(explain(FAULTS, obj, facts_of(obj, node_of()))) == lines


# --- what completes explanations


@pytest.mark.parametrize(
    ("api_version", "kind", "argument"),
    [
        ("v1", "Pod", "pod"),
        ("apps/v1", "Deployment", "deployment"),
        ("networking.k8s.io/v1", "Ingress", "ingress"),
        ("example.com/v1", "Shop", "shop.example.com"),
    ],
)
def test_argument_of_a_command(api_version, kind, argument):
    assert kind_argument({"apiVersion": api_version, "kind": kind}) == argument
    assert log_command(api_version, kind, "", "a") == f"mockube log {argument}/a"
    assert (
        log_command(api_version, kind, "b", "a", "spec.x") == f"mockube log {argument}/a -n b --field spec.x"
    )


def written(**fields):
    author = {"user": "ada", "agent": "kubectl/v1 (x)"}
    return {"revision": 1, "type": "MODIFIED", "author": author, "before": 1, "after": 2, **fields}


UNDO = """kubectl -n default patch deployment/web --type=merge -p '{"spec":{"x":1}}'"""


@pytest.mark.parametrize(
    ("path", "write", "is_undone"),
    [
        (("spec", "x"), written(), True),
        (("metadata", "labels", "x"), written(), True),
        (("metadata", "annotations", "x"), written(), True),
        (("metadata", "finalizers"), written(), False),
        (("status", "x"), written(), False),
        ((), written(), False),
        (("spec", "x"), written(type="ADDED"), False),
        (("spec", "x"), written(isMasked=True), False),
        (("spec", "x"), written(before="x" * 999), False),
        (("spec", "x"), written(before="x" * 998), True),
        (("spec", "x"), written(author={"user": "system:kube-scheduler"}), False),
    ],
)
def test_change_of_a_user_is_undone(path, write, is_undone):
    origin = Origin.named("apps/v1", "Deployment", "default", "web", *path)
    found = completed(Explanation(cause="c", origins=[origin]), facts_of(writes={("web", path): [write]}))
    assert [each.text.partition(":")[0] for each in found.remedies] == (
        ["Undo what ada changed"] if is_undone else []
    )


def test_value_that_was_not_set_is_removed():
    write = {
        name: value
        for name, value in written(author={"manager": "m", "verb": "patch"}).items()
        if name != "before"
    }
    origin = Origin.named("apps/v1", "Deployment", "default", "web", "spec", "x")
    found = completed(
        Explanation(cause="c", origins=[origin]), facts_of(writes={("web", ("spec", "x")): [write]})
    )
    assert [each.text for each in found.remedies] == ["Undo what a user changed: (not set) again:"]
    assert found.remedies[0].command == UNDO.replace('"x":1', '"x":null')
    assert found.origins[0].writes == [
        LastWrite(revision=1, type="MODIFIED", program="m", verb="patch", after="2")
    ]


TRIED = DryRun(verb="delete", kind="Pod", namespace="a", name="b")


@pytest.mark.parametrize(
    ("refusal", "remedies"),
    [
        ("", [("Delete it:", "x"), ("Or wait.", "")]),
        ("forbidden", [("Wait.", "")]),
        (
            None,
            [
                ("Delete it, for which you lack the right to delete pod b in the namespace a.", ""),
                ("Or wait.", ""),
            ],
        ),
    ],
    ids=["accepted", "refused", "no right"],
)
def test_remedy_that_the_server_would_refuse_is_left_out(refusal, remedies):
    facts = facts_of()
    facts.refusal_of = lambda _: refusal
    offered = [Remedy(text="Delete it:", command="x", request=TRIED), Remedy(text="Or wait.")]
    found = completed(Explanation(cause="c", remedies=offered), facts)
    assert [(each.text, each.command) for each in found.remedies] == remedies


def origin_with(api_version, kind, *path, writes=()):
    origin = Origin.named(api_version, kind, "a", "b", *path)
    return Explanation(cause="c", origins=[Origin(object=origin.object, path=origin.path, writes=writes)])


WRITE = LastWrite(revision=1, type="MODIFIED")


@pytest.mark.parametrize(
    ("explanation", "fields"),
    [
        (origin_with("v1", "Pod"), {}),
        (origin_with("v1", "Pod", "spec", "x"), {"field": "spec.x"}),
        (
            origin_with("v1", "Pod", "spec", "x", writes=[WRITE]),
            {"field": "spec.x", "command": "mockube log pod/b -n a --field spec.x"},
        ),
        (origin_with("v1", "Pod", writes=[WRITE]), {"command": "mockube log pod/b -n a"}),
        (origin_with("control.mockube.dev/v1alpha1", "Fault", writes=[WRITE]), {}),
    ],
    ids=["object", "field", "field with a write", "object with a write", "fault"],
)
def test_origin_in_a_status(explanation, fields):
    (origin,) = status_of(explanation, None, [])["origins"]
    assert {name: value for name, value in origin.items() if name in ("field", "command")} == fields
