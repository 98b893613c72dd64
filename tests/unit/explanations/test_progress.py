"""What is said of workloads, Jobs and CronJobs in each state in which they have fewer pods than they should have, or old ones."""

import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import (
    condition,
    event,
    facts_of,
    node_of,
    pod_of,
    resource_of,
    thing,
    with_state,
)
from tests.support.told import evidence_of, told

NEVER_SEEN = {"generation": 2}
PODS = {"containers": [{"name": "c", "image": "nginx"}]}
BAD_IMAGE = with_state({"waiting": {"reason": "ErrImagePull", "message": "not found"}})
NO_IMAGE = "the image nginx of the container c does not exist in its registry"
READY = {"phase": "Running", "conditions": [condition("Ready", "True")]}
EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "memory"}
DELETED = {"deletionTimestamp": "2026-01-31T11:59:50Z", "deletionGracePeriodSeconds": 30}
QUOTA = 'pods "w" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1'
SMALL = "the ResourceQuota small is exhausted: requested: pods=1, used: pods=1, limited: pods=1"


def facts_with(obj, *objects, node=None, **more):
    return facts_of(obj, node or node_of(), *objects, **more)


def other_image(kind):
    return [
        f"- kubectl -n default set image {kind}/web c=IMAGE",
        "- mockube images resolve nginx",
        f"@ {kind}/web spec.template.spec.containers[c].image",
    ]


def workload(kind, status=(), *, name="web", metadata=(), template=(), **spec):
    head = {"annotations": {"deployment.kubernetes.io/revision": "1"}, **dict(metadata)}
    spec = {"replicas": 2, "template": {"spec": PODS, **dict(template)}, **spec}
    return thing(kind, name, api_version="apps/v1", metadata=head, spec=spec, status=dict(status))


def owned_by(owner, **metadata):
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return {"ownerReferences": [reference], **metadata}


def deployment(status=(), **spec):
    return workload("Deployment", {"replicas": 1, **dict(status)}, **spec)


def replica_set(status=(), **fields):
    return workload("ReplicaSet", status, name="web-1", metadata=owned_by(deployment()), **fields)


def stateful_set(status=(), **spec):
    return workload("StatefulSet", status, **spec)


def daemon_set(desired=2, updated=2, **spec):
    status = {"desiredNumberScheduled": desired, "updatedNumberScheduled": updated}
    return workload("DaemonSet", status, replicas=None, **spec)


def pods(owner, *statuses, **metadata):
    name = owner["metadata"]["name"]
    return [
        pod_of(f"{name}-{number}", metadata=owned_by(owner, **metadata), status=status)
        for number, status in enumerate(statuses)
    ]


def of_revision(owner, *hashes):
    label = "controller-revision-hash"
    return [
        pod_of(f"web-{number}", metadata=owned_by(owner, labels={label: value}), status=READY)
        for number, value in enumerate(hashes)
    ]


def complete(replicas):
    return dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), replicas)


ROLLING = replica_set({"availableReplicas": 1, "readyReplicas": 2})
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
BEFORE = {"updateRevision": "new", "replicas": 2}
REFUSED = event(replica_set(), "FailedCreate", f"Error creating: {QUOTA}")
RAISE_QUOTA = [
    "- kubectl -n default describe quota small",
    """- kubectl -n default patch resourcequota/small --type=merge -p '{"spec":{"hard":{"pods":"2"}}}'""",
    "@ resourcequota/small spec.hard",
]
RAISE_FOR_TWO = [each.replace('"pods":"2"', '"pods":"3"') for each in RAISE_QUOTA]

WORKLOADS = {
    "deployment: its controller has not seen the newest spec": (
        workload("Deployment", {"observedGeneration": 1}, metadata=NEVER_SEEN),
        [],
        ["Unknown: its controller has not observed generation 2 yet: it does not run, or it is busy"],
    ),
    "deployment: scaled to zero": (
        deployment(complete(0), replicas=0),
        [],
        [
            "NoProblem: it is scaled to 0: it has no pods because spec.replicas is 0",
            "- kubectl -n default scale deployment/web --replicas=1",
            "@ deployment/web spec.replicas",
        ],
    ),
    "deployment: pods of before have not gone": (
        deployment({**complete(0), "replicas": 1}, replicas=0),
        [replica_set(replicas=0)],
        ["Unknown: the rollout goes on: the ReplicaSet web-1 has its 0 pods, of which 0 are available"],
    ),
    "deployment: one replica is the default": (
        deployment(complete(1), replicas=None),
        [],
        ["NoProblem: all 1 pods are updated and available"],
    ),
    "deployment: paused with another template": (
        deployment(paused=True),
        [replica_set(template={"spec": {"containers": []}})],
        [
            "Explained: the Deployment is paused: its changed template is not rolled out",
            "- kubectl -n default rollout resume deployment/web",
            "@ deployment/web spec.paused",
        ],
    ),
    "deployment: paused before its first ReplicaSet": (
        deployment(paused=True),
        [],
        [
            "Explained: the Deployment is paused: its changed template is not rolled out",
            "- kubectl -n default rollout resume deployment/web",
            "@ deployment/web spec.paused",
        ],
    ),
    "deployment: paused, and the template is that of its ReplicaSet": (
        deployment(paused=True, template={"metadata": {"labels": {"app": "web"}}}),
        [
            replica_set(template={"metadata": {"labels": {"app": "web", "pod-template-hash": "1"}}}),
            *pods(replica_set(), READY, BAD_IMAGE),
        ],
        [
            f"Explained: the ReplicaSet web-1: 1 of 2 pods are not ready; web-1-1: {NO_IMAGE}",
            *other_image("deployment"),
        ],
    ),
    "deployment: the ReplicaSet of another revision is not its newest": (
        deployment(),
        [workload("ReplicaSet", name="old", metadata={**owned_by(deployment()), "annotations": {}})],
        ["Unknown: the Deployment has no ReplicaSet of its revision, and no failure is recorded"],
    ),
    "deployment: the ReplicaSet of another owner is not its newest": (
        deployment(),
        [workload("ReplicaSet", name="other")],
        ["Unknown: the Deployment has no ReplicaSet of its revision, and no failure is recorded"],
    ),
    "deployment: the ReplicaSet cannot be created": (
        deployment(),
        [event(deployment(), "ReplicaSetCreateError", "no")],
        ["Explained: its ReplicaSet cannot be created: no"],
    ),
    "deployment: ready pods are available later": (
        deployment(minReadySeconds=30),
        [ROLLING, *pods(ROLLING, READY, READY)],
        ["Explained: pods are ready, but available only after minReadySeconds, 30 seconds"],
    ),
    "deployment: without minReadySeconds, availability is its controller's to write": (
        deployment(),
        [ROLLING, *pods(ROLLING, READY, READY)],
        ["Unknown: the rollout goes on: the ReplicaSet web-1 has its 2 pods, of which 1 are available"],
    ),
    "deployment: all that are ready are available": (
        deployment(minReadySeconds=30),
        [replica_set({"availableReplicas": 2, "readyReplicas": 2}), *pods(ROLLING, READY, READY)],
        ["Unknown: the rollout goes on: the ReplicaSet web-1 has its 2 pods, of which 2 are available"],
    ),
    "replica set: its controller has not seen the newest spec": (
        workload("ReplicaSet", {"observedGeneration": 1}, metadata=NEVER_SEEN),
        [],
        ["Unknown: its controller has not observed generation 2 yet: it does not run, or it is busy"],
    ),
    "replica set: scaled to zero": (
        workload("ReplicaSet", replicas=0),
        [],
        ["NoProblem: it is scaled to 0"],
    ),
    "replica set: a pod of before has not gone": (
        workload("ReplicaSet", {"replicas": 1}, replicas=0),
        [],
        ["NoProblem: all 0 pods are ready"],
    ),
    "replica set: its pod is ready": (
        workload("ReplicaSet", {"replicas": 1}, replicas=1),
        pods(workload("ReplicaSet"), READY),
        ["NoProblem: its pod is ready"],
    ),
    "replica set: a quota refuses the second pod": (
        replica_set(),
        [*pods(replica_set(), READY), REFUSED],
        [f"Explained: 1 of 2 pods exist: {SMALL}", *RAISE_QUOTA],
    ),
    "replica set: similar events are combined": (
        replica_set(),
        [event(replica_set(), "FailedCreate", f"(combined from similar events): Error creating: {QUOTA}")],
        [f"Explained: 0 of 2 pods exist: {SMALL}", *RAISE_FOR_TWO],
    ),
    "replica set: a pod was created in the second in which one was refused": (
        replica_set(),
        [REFUSED, event(replica_set(), "SuccessfulCreate", "Created pod: web-1-0")],
        [f"Explained: 0 of 2 pods exist: {SMALL}", *RAISE_FOR_TWO],
    ),
    "replica set: a pod was created since one was refused": (
        replica_set(),
        [REFUSED, event(replica_set(), "SuccessfulCreate", "Created pod", "2026-01-31T11:59:01Z")],
        ["Unknown: 0 of 2 pods exist, and no failure of a creation is recorded"],
    ),
    "replica set: its condition is said before an Event": (
        replica_set({"conditions": [condition("ReplicaFailure", "True", "FailedCreate", QUOTA)]}),
        [event(replica_set(), "FailedCreate", "Error creating: another")],
        [f"Explained: 0 of 2 pods exist: {SMALL}", *RAISE_FOR_TWO],
    ),
    "replica set: no more pods than it should have are missing": (
        replica_set(),
        [*pods(replica_set(), READY, BAD_IMAGE), REFUSED],
        [
            f"Explained: 1 of 2 pods are not ready; web-1-1: {NO_IMAGE}",
            *other_image("deployment"),
        ],
    ),
    "replica set: pods fail before others are missing": (
        replica_set(),
        pods(replica_set(), EVICTED),
        ["Explained: 0 of 2 pods exist, and 1 has failed; web-1-0: the pod was evicted: memory"],
    ),
    "replica set: a pod that has succeeded has not failed": (
        replica_set(),
        pods(replica_set(), {"phase": "Succeeded"}),
        ["Unknown: 0 of 2 pods exist, and no failure of a creation is recorded"],
    ),
    "replica set: a pod of which nothing is known comes after one that is explained": (
        replica_set(),
        pods(replica_set(), {"phase": "Pending"}, BAD_IMAGE),
        [
            f"Explained: 2 of 2 pods are not ready; web-1-1: {NO_IMAGE}",
            *other_image("deployment"),
        ],
    ),
    "stateful set: its controller has not seen the newest spec": (
        workload("StatefulSet", {"observedGeneration": 1}, metadata=NEVER_SEEN),
        [],
        ["Unknown: its controller has not observed generation 2 yet: it does not run, or it is busy"],
    ),
    "stateful set: scaled to zero": (
        stateful_set(replicas=0),
        [],
        [
            "NoProblem: it is scaled to 0: it has no pods because spec.replicas is 0",
            "- kubectl -n default scale statefulset/web --replicas=1",
            "@ statefulset/web spec.replicas",
        ],
    ),
    "stateful set: scaled to zero with a pod that remains": (
        stateful_set({"replicas": 1}, replicas=0),
        pods(stateful_set(), READY),
        ["NoProblem: all 0 pods are ready"],
    ),
    "stateful set: the pod with the smallest ordinal is the first": (
        stateful_set(replicas=12),
        [
            pod_of(f"web-{number}", metadata=owned_by(stateful_set()), status=BAD_IMAGE)
            for number in (10, 9, 11)
        ],
        [
            f"Explained: 3 of 12 pods are not ready; web-9: {NO_IMAGE}; 9 more pods are created only when it is ready",
            *other_image("statefulset"),
        ],
    ),
    "stateful set: a pod that ends is not created again before": (
        stateful_set(replicas=2),
        [
            *pods(stateful_set(), BAD_IMAGE),
            pod_of("web-1", metadata=owned_by(stateful_set(), **DELETED), status=READY),
        ],
        [
            f"Explained: 1 of 2 pods are not ready; web-0: {NO_IMAGE}",
            *other_image("statefulset"),
        ],
    ),
    "stateful set: with Parallel no pod waits for another one": (
        stateful_set(replicas=3, podManagementPolicy="Parallel"),
        pods(stateful_set(), BAD_IMAGE),
        [
            f"Explained: 1 of 3 pods are not ready; web-0: {NO_IMAGE}",
            *other_image("statefulset"),
        ],
    ),
    "stateful set: all pods have the newest revision": (
        stateful_set(BEFORE),
        of_revision(stateful_set(), "new", "new"),
        ["NoProblem: all 2 pods are ready"],
    ),
    "stateful set: no revision is recorded": (
        stateful_set(),
        of_revision(stateful_set(), "new", "old"),
        ["NoProblem: all 2 pods are ready"],
    ),
    "stateful set: OnDelete": (
        stateful_set(BEFORE, **ON_DELETE),
        of_revision(stateful_set(), "new", "old"),
        [
            "Explained: 1 pod has the template of before: with OnDelete a pod is replaced when it is deleted",
            "- kubectl -n default delete pod/web-1",
        ],
    ),
    "stateful set: below the partition": (
        stateful_set(BEFORE, updateStrategy={"rollingUpdate": {"partition": 2}}),
        of_revision(stateful_set(), "old", "old"),
        ["NoProblem: 2 pods keep the template of before, because the partition is 2"],
    ),
    "stateful set: at the partition": (
        stateful_set(BEFORE, updateStrategy={"rollingUpdate": {"partition": 1}}),
        of_revision(stateful_set(), "new", "old"),
        ["Unknown: 1 pod has the template of before; the update goes on"],
    ),
    "daemon set: its controller has not seen the newest spec": (
        workload("DaemonSet", {"observedGeneration": 1}, metadata=NEVER_SEEN),
        [],
        ["Unknown: its controller has not observed generation 2 yet: it does not run, or it is busy"],
    ),
    "daemon set: a pod is not ready": (
        daemon_set(),
        pods(daemon_set(), READY, BAD_IMAGE),
        [
            f"Explained: 1 of 2 pods are not ready; web-1: {NO_IMAGE}",
            *other_image("daemonset"),
        ],
    ),
    "daemon set: OnDelete": (
        daemon_set(updated=1, **ON_DELETE),
        pods(daemon_set(), READY, READY),
        ["Explained: 1 pod has the template of before: with OnDelete a pod is replaced when it is deleted"],
    ),
    "daemon set: an update goes on": (
        daemon_set(updated=1),
        pods(daemon_set(), READY, READY),
        ["Unknown: 1 of 2 pods are updated; the update goes on"],
    ),
    "daemon set: all pods are ready": (
        daemon_set(**ON_DELETE),
        pods(daemon_set(), READY, READY),
        ["NoProblem: all 2 pods are ready"],
    ),
}


@pytest.mark.parametrize(("obj", "objects", "lines"), WORKLOADS.values(), ids=WORKLOADS)
def test_workload(obj, objects, lines):
    assert told(explain(resource_of(obj), obj, facts_with(obj, *objects))) == lines


@pytest.mark.parametrize(
    ("kind", "status", "objects", "evidence"),
    [
        (
            "Deployment",
            {
                "replicas": 2,
                "updatedReplicas": 1,
                "conditions": [condition("Progressing", "False", "Slow", "m")],
            },
            [ROLLING, *pods(ROLLING, READY, READY)],
            ["replicas 2, updatedReplicas 1, readyReplicas 0, availableReplicas 0", "m"],
        ),
        (
            "ReplicaSet",
            {},
            [
                *pods(workload("ReplicaSet"), EVICTED, EVICTED),
                pod_of("ends", metadata=owned_by(workload("ReplicaSet"), **DELETED)),
            ],
            [
                "Evicted: memory",
                "1 pod is being deleted, such as ends",
                "2 pods have ended, such as web-0",
            ],
        ),
    ],
    ids=["counts and the condition", "pods that do not count"],
)
def test_evidence_of_workload(kind, status, objects, evidence):
    obj = workload(kind, status)
    found = evidence_of(explain(resource_of(obj), obj, facts_with(obj, *objects)))
    assert found[-len(evidence) :] == evidence


DAEMON_TAINTS = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
]


@pytest.mark.parametrize(
    ("key", "effect", "host_network", "is_tolerated"),
    [
        *((key, effect, False, True) for key, effect in DAEMON_TAINTS),
        ("node.kubernetes.io/network-unavailable", "NoSchedule", True, True),
        ("node.kubernetes.io/network-unavailable", "NoSchedule", False, False),
        ("node.kubernetes.io/not-ready", "NoSchedule", False, False),
        ("team", "NoSchedule", False, False),
    ],
)
def test_taint_that_pods_of_daemon_sets_tolerate(key, effect, host_network, is_tolerated):
    """As AddOrUpdateDaemonPodTolerations of Kubernetes."""
    obj = daemon_set(0, template={"spec": {**PODS, "hostNetwork": host_network}})
    node = node_of(taints=[{"key": key, "effect": effect}])
    found = explain(resource_of(obj), obj, facts_with(obj, node=node))
    assert found.cause.endswith(f"; a: {key}:{effect}") is not is_tolerated
    assert (found.state == "Unknown") is is_tolerated


# --- Jobs


def job(status=(), *, metadata=(), **spec):
    spec = {"template": {"spec": PODS}, **spec}
    return thing("Job", api_version="batch/v1", metadata=metadata, spec=spec, status=dict(status))


def ended(name, reason, message="m"):
    return {"conditions": [condition(name, "True", reason, message)]}


CRON = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "cron", "uid": "uid-cron", "controller": True}
OF_CRON = {"ownerReferences": [CRON]}
BY_KUBECTL = {"user": "ada", "agent": "kubectl/v1 (x)", "subresource": "eviction"}
EVICTION = {"revision": 2, "type": "DELETED", "author": BY_KUBECTL}
EVICTED_POD = "the pod web-x was evicted by ada with kubectl/v1, as the drain of a node does, and a pod that is evicted counts as failed"
IGNORE = "- Let disruptions not count: spec.podFailurePolicy with action Ignore for the condition DisruptionTarget, in a Job that replaces it."
MADE = event(job(), "SuccessfulCreate", "Created pod: web-x")
FAILED_POD = "the pod was evicted: memory"

JOBS = {
    "complete": (job(ended("Complete", "CompletionsReached")), [], ["NoProblem: the Job is complete"]),
    "of another controller": (
        job(managedBy="example.com/queue"),
        [],
        ["Unknown: the Job is left to another controller, example.com/queue"],
    ),
    "of the controller of Kubernetes by name": (
        job(managedBy="kubernetes.io/job-controller"),
        [],
        ["Unknown: the Job has no pods, and no failure is recorded"],
    ),
    "fails when its pods have ended": (
        job(ended("FailureTarget", "DeadlineExceeded")),
        [],
        ["Explained: the Job fails when its pods have ended, DeadlineExceeded: m"],
    ),
    "is complete when its pods have ended": (
        job(ended("SuccessCriteriaMet", "SuccessPolicy")),
        [],
        ["NoProblem: the Job is complete when its pods have ended"],
    ),
    "suspended": (
        job(suspend=True),
        [],
        [
            "Explained: the Job is suspended: it has no pods",
            """- kubectl -n default patch job/web -p '{"spec":{"suspend":false}}'""",
            "@ job/web spec.suspend",
        ],
    ),
    **{
        f"failed by its pods, {reason}": (
            job(ended("Failed", reason)),
            pods(job(), EVICTED),
            [f"Explained: the Job has failed, {reason}: m: {FAILED_POD}"],
        )
        for reason in ("BackoffLimitExceeded", "MaxFailedIndexesExceeded", "FailedIndexes")
    },
    "failed by its policy of failures": (
        job(ended("Failed", "PodFailurePolicy")),
        pods(job(), EVICTED),
        [
            f"Explained: the Job has failed, PodFailurePolicy: m: {FAILED_POD}",
            "- Change the rule that failed it, or the exit code of the program: spec.podFailurePolicy, in a Job that replaces web.",
            "@ job/web spec.podFailurePolicy",
        ],
    ),
    "failed by its deadline": (
        job(ended("Failed", "DeadlineExceeded"), activeDeadlineSeconds=5),
        pods(job(), EVICTED),
        [
            "Explained: the Job has failed, DeadlineExceeded: m",
            "- Give it more time: spec.activeDeadlineSeconds, in a Job that replaces web.",
            "@ job/web spec.activeDeadlineSeconds",
        ],
    ),
    "failed by the deadline of its CronJob": (
        job(ended("Failed", "DeadlineExceeded"), metadata=OF_CRON, activeDeadlineSeconds=5),
        [],
        [
            "Explained: the Job has failed, DeadlineExceeded: m",
            """- kubectl -n default patch cronjob/cron --type=merge -p '{"spec":{"jobTemplate":{"spec":{"activeDeadlineSeconds":10}}}}'""",
            "@ cronjob/cron spec.jobTemplate.spec.activeDeadlineSeconds",
        ],
    ),
    "failed by the policy of failures of its CronJob": (
        job(ended("Failed", "PodFailurePolicy"), metadata=OF_CRON, activeDeadlineSeconds=5),
        [],
        [
            "Explained: the Job has failed, PodFailurePolicy: m",
            "- Change the rule that failed it, or the exit code of the program: spec.podFailurePolicy, in a Job that replaces web.",
            "@ cronjob/cron spec.jobTemplate.spec.podFailurePolicy",
        ],
    ),
    "failed by pods that are gone, without an eviction": (
        job(ended("Failed", "BackoffLimitExceeded")),
        [MADE],
        ["Explained: the Job has failed, BackoffLimitExceeded: m"],
    ),
    "no pods are wanted": (
        job(parallelism=0),
        [],
        [
            "Explained: the Job has no pods, because spec.parallelism is 0",
            """- kubectl -n default patch job/web -p '{"spec":{"parallelism":1}}'""",
            "@ job/web spec.parallelism",
        ],
    ),
    "a quota refuses its pod": (
        job(),
        [event(job(), "FailedCreate", f"Error creating: {QUOTA}")],
        [f"Explained: 0 of 1 pods exist: {SMALL}", *RAISE_QUOTA],
    ),
    "a pod is not ready": (
        job(),
        pods(job(), BAD_IMAGE),
        [
            f"Explained: 1 of 1 pods are not ready; web-0: {NO_IMAGE}",
            "- Set another image, in a Job that replaces web.",
            "- mockube images resolve nginx",
            "@ job/web spec.template.spec.containers[c].image",
        ],
    ),
    "its pods run": (
        job({"failed": 1}),
        pods(job(), READY, READY),
        ["NoProblem: 2 pods run, and 1 has failed before"],
    ),
    "waits for its next attempt": (
        job({"failed": 2}),
        pods(job(), EVICTED),
        [f"Explained: the Job waits for its next attempt, 2 have failed of at most 6 that may: {FAILED_POD}"],
    ),
    "waits for its next attempt, limited by index": (
        job({"failed": 2}, backoffLimitPerIndex=1),
        pods(job(), EVICTED),
        [f"Explained: the Job waits for its next attempt, 2 pods have failed: {FAILED_POD}"],
    ),
    "waits for its next attempt, and restarts containers": (
        job(template={"spec": {**PODS, "restartPolicy": "OnFailure"}}),
        pods(job(), EVICTED),
        [f"Explained: the Job waits for its next attempt: {FAILED_POD}"],
    ),
}


@pytest.mark.parametrize(("obj", "objects", "lines"), JOBS.values(), ids=JOBS)
def test_job(obj, objects, lines):
    assert told(explain(resource_of(obj), obj, facts_with(obj, *objects))) == lines


@pytest.mark.parametrize(
    ("obj", "objects", "cause", "remedies"),
    [
        (
            job(ended("Failed", "BackoffLimitExceeded")),
            [],
            f"the Job has failed, BackoffLimitExceeded: m: {EVICTED_POD}",
            [IGNORE],
        ),
        (job(), [], EVICTED_POD, [IGNORE]),
        (
            job(),
            [*pods(job(), READY), pod_of("ends", metadata=owned_by(job(), **DELETED))],
            f"1 pod runs, and 0 have failed before; {EVICTED_POD}",
            [IGNORE],
        ),
        (job(), pods(job(), READY), "1 pod runs, and 0 have failed before", []),
    ],
    ids=["failed", "without pods", "beside one that runs", "no pod ends"],
)
def test_eviction_of_a_pod_of_a_job(obj, objects, cause, remedies):
    writes = {
        ("web-x", ()): [
            {"revision": 3, "type": "MODIFIED"},
            EVICTION,
        ]
    }
    found = told(explain(resource_of(obj), obj, facts_with(obj, MADE, *objects, writes=writes)))
    assert found[0].partition(": ")[2] == cause
    assert found[1:] == ([*remedies, "@ pod/web-x", "@ job/web spec.backoffLimit"] if remedies else [])


# --- CronJobs


def cron_job(status=(), **spec):
    spec = {"schedule": "* * * * *", **spec}
    return thing("CronJob", api_version="batch/v1", spec=spec, status=dict(status))


def said(reason, message="m", time="2026-01-31T11:59:00Z"):
    return event(cron_job(), reason, message, time)


def started(time="2026-01-31T11:00:00Z", status=(), name="web-1", **spec):
    made = job(status, metadata=owned_by(cron_job(), creationTimestamp=time), **spec)
    return {**made, "metadata": {**made["metadata"], "name": name, "uid": f"uid-{name}"}}


BY_SCHEDULE = "NoProblem: no problem is recorded: it starts Jobs by its schedule"
ACTIVE = {"active": [{"name": "web-1"}]}
FORBID = {"concurrencyPolicy": "Forbid"}
MISSED = [
    "Explained: the deadline of a start has passed: startingDeadlineSeconds is 5",
    """- kubectl -n default patch cronjob/web --type=merge -p '{"spec":{"startingDeadlineSeconds":null}}'""",
    "@ cronjob/web spec.startingDeadlineSeconds",
]

CRON_JOBS = {
    "suspended": (
        cron_job(suspend=True),
        [],
        [
            "Explained: the CronJob is suspended: it starts no Jobs",
            """- kubectl -n default patch cronjob/web -p '{"spec":{"suspend":false}}'""",
            "@ cronjob/web spec.suspend",
        ],
    ),
    "by its schedule": (cron_job(), [said("TooManyMissedTimes")], [BY_SCHEDULE]),
    "no Job can be created": (
        cron_job(),
        [said("FailedCreate", f"Error creating job: {QUOTA}")],
        [f"Explained: no Job is started: {SMALL}", *RAISE_QUOTA],
    ),
    "a Job could not be created before the last one was": (
        cron_job(),
        [said("FailedCreate", QUOTA), started("2026-01-31T11:59:30Z")],
        [BY_SCHEDULE],
    ),
    "a Job could not be created before the last one was, which is gone": (
        cron_job(),
        [said("FailedCreate", QUOTA), said("SuccessfulCreate", "Created job", "2026-01-31T11:59:30Z")],
        [BY_SCHEDULE],
    ),
    "a Job could not be created before the last start": (
        cron_job({"lastScheduleTime": "2026-01-31T11:59:30Z"}),
        [said("FailedCreate", QUOTA)],
        [BY_SCHEDULE],
    ),
    "its time zone is not known": (
        cron_job(timeZone="Mars"),
        [said("UnknownTimeZone")],
        [
            "Explained: no Job is started: its time zone Mars is not known",
            """- kubectl -n default patch cronjob/web -p '{"spec":{"timeZone":"Etc/UTC"}}'""",
            "@ cronjob/web spec.timeZone",
        ],
    ),
    **{
        f"its schedule {problem}": (
            cron_job(schedule="0 0 31 2 *"),
            [said(reason)],
            [
                f"Explained: no Job is started: the schedule 0 0 31 2 * {problem}",
                """- kubectl -n default patch cronjob/web -p '{"spec":{"schedule":"0 0 * * *"}}'""",
                "@ cronjob/web spec.schedule",
            ],
        )
        for reason, problem in (
            ("InvalidSchedule", "names no time that comes"),
            ("UnparseableSchedule", "is not understood"),
        )
    },
    "Forbid waits for a Job": (
        cron_job(ACTIVE, **FORBID),
        [said("JobAlreadyActive"), started(suspend=True)],
        [
            "Explained: the Job web-1 has not ended, and concurrencyPolicy Forbid lets no other one start",
            """- kubectl -n default patch job/web-1 -p '{"spec":{"suspend":false}}'""",
            "- kubectl -n default delete job/web-1",
            """- kubectl -n default patch cronjob/web -p '{"spec":{"concurrencyPolicy":"Replace"}}'""",
            "@ job/web-1 spec.suspend",
            "@ cronjob/web spec.concurrencyPolicy",
        ],
    ),
    "Forbid has waited for no Job yet": (cron_job(ACTIVE, **FORBID), [started(suspend=True)], [BY_SCHEDULE]),
    "Forbid waited for a Job that has ended": (
        cron_job(**FORBID),
        [said("JobAlreadyActive"), started()],
        [BY_SCHEDULE],
    ),
    "Allow waits for no Job": (
        cron_job(ACTIVE, concurrencyPolicy="Allow"),
        [said("JobAlreadyActive"), started()],
        [BY_SCHEDULE],
    ),
    "a deadline has passed": (cron_job(startingDeadlineSeconds=5), [said("MissSchedule")], MISSED),
    "its last Job has failed": (
        cron_job(),
        [
            started("2026-01-31T11:10:00Z", ended("Failed", "DeadlineExceeded"), "web-2"),
            started("2026-01-31T11:00:00Z", ended("Complete", "x")),
            started("2026-01-31T11:20:00Z", name="web-3"),
        ],
        [
            "Explained: it starts Jobs by its schedule, and web-2, the last one that has ended, has failed: the Job has failed, DeadlineExceeded: m",
            "- Give it more time: spec.activeDeadlineSeconds, in a Job that replaces web-2.",
            "@ cronjob/web spec.jobTemplate.spec.activeDeadlineSeconds",
        ],
    ),
    "its last Job but one has failed": (
        cron_job(),
        [
            started("2026-01-31T11:00:00Z", ended("Failed", "DeadlineExceeded")),
            started("2026-01-31T11:10:00Z", ended("Complete", "x"), "web-2"),
        ],
        [BY_SCHEDULE],
    ),
    "the Job of another CronJob has failed": (
        cron_job(),
        [job(ended("Failed", "DeadlineExceeded"), metadata=OF_CRON)],
        [BY_SCHEDULE],
    ),
}


@pytest.mark.parametrize(("obj", "objects", "lines"), CRON_JOBS.values(), ids=CRON_JOBS)
def test_cron_job(obj, objects, lines):
    assert told(explain(resource_of(obj), obj, facts_with(obj, *objects))) == lines
