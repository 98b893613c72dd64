"""Explanations of workloads that do not progress."""

import pytest

from mockube.apimachinery.groups import GroupResource
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

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "nginx"}]}}
REVISION = {"deployment.kubernetes.io/revision": "1"}
BAD_IMAGE = with_state({"waiting": {"reason": "ErrImagePull", "message": "not found"}})
READY = {"phase": "Running", "conditions": [condition("Ready", "True")]}
QUOTA = 'pods "w" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1'


def explained(obj, *objects, **more):
    return explain(resource_of(obj), obj, facts_of(obj, node_of(), *objects, **more))


def owned(owner):
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return {"ownerReferences": [reference]}


def workload(kind, name="web", *, status=(), metadata=(), api_version="apps/v1", **spec):
    spec = {"replicas": 2, "template": TEMPLATE, **spec}
    return thing(kind, name, api_version=api_version, metadata=metadata, spec=spec, status=dict(status))


def deployment(status=(), **spec):
    return workload("Deployment", metadata={"annotations": REVISION}, status=status, **spec)


def replica_set(owner, status=(), **spec):
    return workload(
        "ReplicaSet", "web-1", metadata={"annotations": REVISION, **owned(owner)}, status=status, **spec
    )


def pods_of(owner, *statuses):
    return [
        pod_of(f"{owner['metadata']['name']}-{number}", metadata=owned(owner), status=status)
        for number, status in enumerate(statuses)
    ]


def complete(count):
    return dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), count)


def test_complete_deployment():
    found = explained(deployment(complete(2)))
    assert (found.state, found.cause) == ("NoProblem", "all 2 pods are updated and available")


def test_deployment_scaled_to_zero_names_last_write_of_its_replicas():
    write = {"revision": 9, "type": "MODIFIED", "author": {"user": "ada", "agent": "kubectl/v1.37.2 (x)"}}
    writes = {("web", ("spec", "replicas")): [write | {"before": 3, "after": 0}]}
    found = explained(deployment(complete(0), replicas=0), writes=writes)
    assert found.cause == "it is scaled to 0: it has no pods because spec.replicas is 0"
    (origin,) = found.origins
    (last,) = origin.writes
    assert (str(origin.object), origin.path) == ("deployment/web", ("spec", "replicas"))
    assert (last.user, last.program, last.before, last.after) == ("ada", "kubectl/v1.37.2", "3", "0")


@pytest.mark.parametrize(
    ("ended", "is_named"),
    [("2026-01-31T11:50:00Z", True), ("2026-01-31T11:49:59Z", False), (None, False)],
)
def test_workload_whose_pod_was_just_evicted_and_replaced_names_why(ended, is_named):
    conditions = [condition("Ready", "False") | {"lastTransitionTime": ended}] if ended else []
    evicted = {"phase": "Failed", "reason": "Evicted", "message": "memory", "conditions": conditions}
    owner = deployment(complete(1), replicas=1)
    created = replica_set(owner)
    found = explained(owner, created, *pods_of(created, READY, evicted))
    assert found.cause == "all 1 pods are updated and available" + (
        "; web-1-1: the pod was evicted: memory" if is_named else ""
    )
    assert [str(each.object) for each in found.related] == (["pod/web-1-1"] if is_named else [])


def test_deployment_whose_pods_are_not_ready():
    owner = deployment({"replicas": 2})
    created = replica_set(owner)
    found = explained(owner, created, *pods_of(created, BAD_IMAGE, READY))
    assert found.cause == (
        "the ReplicaSet web-1: 1 of 2 pods are not ready; web-1-0: the image nginx of the container c does not exist in "
        "its registry"
    )
    assert [str(each.object) for each in found.related] == ["pod/web-1-0"]
    assert found.remedies[0].command == "kubectl -n default set image deployment/web c=IMAGE"


def test_pods_that_have_ended_do_not_exist_for_their_workload():
    evicted = {"phase": "Failed", "reason": "Evicted", "message": "memory"}
    owner = workload("ReplicaSet", replicas=2, status={"replicas": 0})
    ended = pods_of(owner, evicted, evicted)
    found = explained(owner, *ended, event(owner, "FailedCreate", f"Error creating: {QUOTA}"))
    assert found.cause.startswith("0 of 2 pods exist: the ResourceQuota small is exhausted")
    assert "2 pods have ended, such as web-0" in [each.text for each in found.evidence]
    without_failure = explained(owner, *ended)
    assert without_failure.cause == (
        "0 of 2 pods exist, and 2 have failed; web-1: the pod was evicted: memory"
    )


@pytest.mark.parametrize("has_condition", [True, False])
def test_pods_that_a_quota_refuses(has_condition):
    owner = deployment({"replicas": 1})
    status = (
        {"conditions": [condition("ReplicaFailure", "True", "FailedCreate", QUOTA)]} if has_condition else {}
    )
    created = replica_set(owner, status)
    events = [] if has_condition else [event(created, "FailedCreate", f"Error creating: {QUOTA}")]
    found = explained(owner, created, *pods_of(created, READY), *events)
    assert found.cause == (
        "the ReplicaSet web-1: 1 of 2 pods exist: the ResourceQuota small is exhausted: requested: pods=1, used: pods=1, "
        "limited: pods=1"
    )
    assert found.remedies[0].command == "kubectl -n default describe quota small"


def test_failure_before_a_creation_is_no_cause():
    owner = deployment({"replicas": 1})
    created = replica_set(owner)
    events = [
        event(created, "FailedCreate", QUOTA, "2026-01-31T11:00:00Z"),
        event(created, "SuccessfulCreate", "Created pod: web-1-0", "2026-01-31T11:30:00Z"),
    ]
    found = explained(owner, created, *pods_of(created, READY), *events)
    assert found.state == "Unknown"
    assert "no failure of a creation is recorded" in found.cause


def test_paused_deployment_whose_template_has_changed():
    owner = deployment({"replicas": 2}, paused=True)
    changed = {"spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
    found = explained(owner, replica_set(owner, template=changed))
    assert found.cause.startswith("the Deployment is paused")
    labelled = {**TEMPLATE, "metadata": {"labels": {"pod-template-hash": "1"}, "annotations": {"a": "b"}}}
    assert explained(owner, replica_set(owner, template=labelled)).cause.startswith(
        "the Deployment is paused"
    )
    created = replica_set(owner, template={**TEMPLATE, "metadata": {"labels": {"pod-template-hash": "1"}}})
    unready = explained(owner, created, *pods_of(created, BAD_IMAGE, BAD_IMAGE))
    assert unready.cause.startswith("the ReplicaSet web-1: 2 of 2 pods are not ready")


def test_deployment_without_evidence_is_not_explained():
    unseen = deployment()
    unseen["metadata"]["generation"] = 2
    assert explained(unseen).state == "Unknown"
    owner = deployment({"replicas": 2})
    assert explained(owner).state == "Unknown"
    created = replica_set(owner)
    assert explained(owner, created, refused=("pods",)).state == "Unknown"
    assert explained(owner, created, refused=("replicasets.apps",)).state == "Unknown"
    found = explained(owner, created, *pods_of(created, READY, READY))
    assert "the rollout goes on" in found.cause


def test_pods_that_are_not_available_yet():
    owner = deployment({"replicas": 2}, minReadySeconds=30)
    created = replica_set(owner, {"readyReplicas": 2})
    found = explained(owner, created, *pods_of(created, READY, READY))
    assert found.cause == "pods are ready, but available only after minReadySeconds, 30 seconds"


def test_stateful_set_waits_for_its_first_pod():
    owner = workload("StatefulSet", replicas=3)
    found = explained(owner, *pods_of(owner, BAD_IMAGE))
    assert found.cause.startswith("1 of 3 pods are not ready; web-0: the image nginx")
    assert found.cause.endswith("; 2 more pods are created only when it is ready")
    first, second, third = pods_of(owner, BAD_IMAGE, BAD_IMAGE, READY)
    third["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    found = explained(owner, first, second, third)
    assert found.cause.startswith("2 of 3 pods are not ready; web-0: the image nginx")
    assert "more pods" not in found.cause


def test_stateful_set_with_pods_of_before():
    def found_with(strategy):
        owner = workload("StatefulSet", status={"updateRevision": "new"}, updateStrategy=strategy)
        return explained(owner, *pods_of(owner, READY, READY))

    assert "with OnDelete a pod is replaced when it is deleted" in found_with({"type": "OnDelete"}).cause
    kept = found_with({"rollingUpdate": {"partition": 2}})
    assert (kept.state, "the partition is 2" in kept.cause) == ("NoProblem", True)
    assert found_with({}).state == "Unknown"


def test_daemon_set_without_nodes():
    selector = {"spec": {**TEMPLATE["spec"], "nodeSelector": {"gpu": "yes"}}}
    found = explained(workload("DaemonSet", template=selector))
    assert found.cause == (
        "none of 1 node may run its pod: node(s) didn't match Pod's node affinity/selector (1); a: lacks gpu=yes"
    )
    assert [each.command for each in found.remedies] == [
        "kubectl label node a gpu=yes --overwrite",
        'kubectl -n default patch daemonset/web -p \'{"spec":{"template":{"spec":{"nodeSelector":{"gpu":null}}}}}\'',
    ]
    assert explained(workload("DaemonSet")).state == "Unknown"


RESERVED = node_of("cp", taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}])
TOLERATE = """{"spec":{"template":{"spec":{"tolerations":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule","operator":"Exists"}]}}}}"""


def test_node_that_a_daemon_set_does_not_reach_for_a_taint_is_named_with_the_toleration():
    owner = workload("DaemonSet", status={"desiredNumberScheduled": 1, "updatedNumberScheduled": 1})
    found = explained(owner, *pods_of(owner, READY), RESERVED)
    assert found.state == "NoProblem"
    assert found.cause == (
        "its pod is ready; 1 node has none, because of a taint that its pods do not tolerate: cp: "
        "node-role.kubernetes.io/control-plane:NoSchedule"
    )
    assert TOLERATE in found.remedies[-1].command
    tolerant = {"spec": {**TEMPLATE["spec"], "tolerations": [{"operator": "Exists"}]}}
    owner = workload(
        "DaemonSet",
        template=tolerant,
        status={"desiredNumberScheduled": 2, "updatedNumberScheduled": 2},
    )
    assert explained(owner, *pods_of(owner, READY, READY), RESERVED).cause == "all 2 pods are ready"


def test_daemon_set_that_selects_the_control_plane_gets_the_toleration():
    label = {"node-role.kubernetes.io/control-plane": ""}
    selector = {"spec": {**TEMPLATE["spec"], "nodeSelector": label}}
    node = node_of("cp", taints=RESERVED["spec"]["taints"], labels=label)
    found = explained(workload("DaemonSet", template=selector), node, node_of("b"))
    assert found.cause.endswith("; cp: node-role.kubernetes.io/control-plane:NoSchedule")
    assert any(TOLERATE in each.command for each in found.remedies)


def job(status=(), **spec):
    return workload("Job", api_version="batch/v1", status=status, **spec)


def test_jobs():
    assert explained(job({"conditions": [condition("Complete", "True")]})).state == "NoProblem"
    assert explained(job(suspend=True)).cause == "the Job is suspended: it has no pods"
    failed = job({"conditions": [condition("Failed", "True", "BackoffLimitExceeded", "too many")]})
    end = {"phase": "Failed", **with_state({"terminated": {"exitCode": 4}})}
    found = explained(failed, *pods_of(failed, end))
    assert found.cause == (
        "the Job has failed, BackoffLimitExceeded: too many: the pod failed: the container c ended with exit code 4: "
        "its own program failed"
    )
    retried = job({"failed": 1})
    assert explained(retried, *pods_of(retried, end)).cause.startswith(
        "the Job waits for its next attempt, 1 has failed"
    )
    unready = job({"active": 1})
    assert "1 of 1 pods are not ready" in explained(unready, *pods_of(unready, BAD_IMAGE)).cause
    assert explained(job()).state == "Unknown"
    assert explained(job(parallelism=0)).cause == "the Job has no pods, because spec.parallelism is 0"


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"backoffLimit": 3}, "the Job waits for its next attempt, 2 have failed of at most 3 that may: "),
        ({"backoffLimitPerIndex": 1}, "the Job waits for its next attempt, 2 pods have failed: "),
        ({"podFailurePolicy": {"rules": []}}, "the Job waits for its next attempt, 2 pods have failed: "),
    ],
)
def test_limit_of_failures_is_said_only_where_it_counts_pods(fields, cause):
    retried = job({"failed": 2}, **fields)
    end = {"phase": "Failed", **with_state({"terminated": {"exitCode": 4}})}
    assert explained(retried, *pods_of(retried, end)).cause.startswith(cause)


def test_job_that_fails_when_its_pods_have_ended():
    target = condition("FailureTarget", "True", "DeadlineExceeded", "too long")
    cause = "the Job fails when its pods have ended, DeadlineExceeded: too long"
    assert explained(job({"conditions": [target]})).cause == cause


def test_failure_of_a_job_by_its_deadline_has_no_cause_in_a_pod():
    failed = job({"conditions": [condition("Failed", "True", "DeadlineExceeded", "too long")]})
    end = {"phase": "Failed", **with_state({"terminated": {"exitCode": 4}})}
    assert explained(failed, *pods_of(failed, end)).cause == "the Job has failed, DeadlineExceeded: too long"


def cron_job(status=(), **spec):
    return workload("CronJob", "nightly", api_version="batch/v1", status=status, schedule="0 0 * * *", **spec)


def test_cron_jobs():
    assert explained(cron_job()).state == "NoProblem"
    assert "is suspended" in explained(cron_job(suspend=True)).cause
    waiting = cron_job({"active": [{"name": "web"}]}, concurrencyPolicy="Forbid")
    assert explained(waiting, job({"active": 1})).state == "NoProblem"
    found = explained(waiting, job({"active": 1}), event(waiting, "JobAlreadyActive", "Not starting"))
    assert found.cause == "the Job web has not ended, and concurrencyPolicy Forbid lets no other one start"
    missed = cron_job(startingDeadlineSeconds=9)
    assert "startingDeadlineSeconds is 9" in explained(missed, event(missed, "MissSchedule", "Missed")).cause


def test_cron_job_that_has_started_a_job_since_has_no_problem():
    job = cron_job({"lastScheduleTime": "2026-01-31T11:59:30Z"})
    assert explained(job, event(job, "MissSchedule", "Missed")).state == "NoProblem"
    assert explained(job, event(job, "FailedCreate", "no")).state == "NoProblem"


def test_failure_before_the_creation_of_a_job_is_no_problem_of_its_cron_job():
    owner = cron_job({"lastScheduleTime": "2026-01-31T11:58:00Z"})
    metadata = {"creationTimestamp": "2026-01-31T11:59:10Z", **owned(owner)}
    started = workload("Job", "nightly-1", api_version="batch/v1", metadata=metadata)
    failed = event(owner, "FailedCreate", "no")
    assert explained(owner, started, failed).state == "NoProblem"
    assert explained(owner, failed).cause == "no Job is started: no"
    assert explained(owner, failed, refused=("events",)).state == "Unknown"
    many = event(owner, "TooManyMissedTimes", "too many missed start times")
    assert explained(owner, many).state == "NoProblem"


def budget(**status):
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return thing("PodDisruptionBudget", "keep", api_version="policy/v1", spec=spec, status=status)


def test_budgets_and_drains():
    assert explained(budget(disruptionsAllowed=1)).state == "NoProblem"
    strict = budget(expectedPods=1, currentHealthy=1, desiredHealthy=1)
    assert explained(strict).cause == "no ready pod may be evicted: 1 pods are healthy, and 1 must be"
    few = budget(expectedPods=2, currentHealthy=1, desiredHealthy=2)
    assert explained(few).cause == "no pod may be evicted: 1 pods are healthy, and 2 must be"
    few["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    assert explained(few).cause.startswith("no ready pod may be evicted")
    cordoned = node_of("b", unschedulable=True)
    pod = pod_of(nodeName="b", metadata={"labels": {"app": "web"}}, status=READY)
    found = explained(cordoned, strict, pod)
    assert "a drain cannot evict 1 of its pods, such as web: the PodDisruptionBudget keep" in found.cause
    assert found.remedies[0].command == "mockube why poddisruptionbudget/keep -n default"
    assert (
        explained(cordoned, strict, pod, refused=("pods",)).cause
        == "the node is cordoned: it takes no new pods"
    )


def test_budget_that_is_not_computed():
    assert explained(budget()).state == "Unknown"
    failed = condition("DisruptionAllowed", "False", "SyncFailed", "found no controller")
    found = explained(budget(conditions=[failed]))
    assert (found.state, found.cause.endswith("found no controller")) == ("Explained", True)
    assert explained(budget(expectedPods=0)).state == "NoProblem"
    selected = pod_of(metadata={"labels": {"app": "web"}}, status=READY)
    assert explained(budget(expectedPods=0), selected).state == "Explained"


@pytest.mark.parametrize(
    "fields",
    [
        {"deletionTimestamp": "2026-01-31T12:00:20Z"},
        {"annotations": {"kubernetes.io/config.mirror": "x"}},
        owned(workload("DaemonSet", "agent")),
    ],
)
def test_pods_that_a_drain_leaves_do_not_keep_it_from_its_end(fields):
    strict = budget(expectedPods=1, currentHealthy=1, desiredHealthy=1)
    pod = pod_of(nodeName="b", metadata={"labels": {"app": "web"}, **fields}, status=READY)
    assert "no PodDisruptionBudget keeps" in explained(node_of("b", unschedulable=True), strict, pod).cause


def test_budget_without_selector_and_unready_pods_keep_no_drain_from_its_end():
    strict = budget(expectedPods=1, currentHealthy=1, desiredHealthy=1)
    cordoned = node_of("b", unschedulable=True)
    unready = pod_of(nodeName="b", metadata={"labels": {"app": "web"}})
    assert "no PodDisruptionBudget keeps" in explained(cordoned, strict, unready).cause
    strict["spec"]["selector"] = None
    ready = pod_of(nodeName="b", metadata={"labels": {"app": "web"}}, status=READY)
    assert "no PodDisruptionBudget keeps" in explained(cordoned, strict, ready).cause


def test_nodes():
    assert explained(node_of()).state == "NoProblem"
    assert explained(node_of("b", ready="Unknown")).cause.startswith("its kubelet has stopped reporting")
    assert explained(node_of("b", ready="False")).cause.startswith("its kubelet reports that it is not ready")


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ('admission webhook "a.b" denied the request: no', "the admission webhook a.b denied it: no"),
        ('pods "x" is forbidden: violates PodSecurity "restricted:v1": y', "it violates restricted:v1: y"),
        (
            "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: z",
            "the ValidatingAdmissionPolicy p, bound by b, denied it: z",
        ),
        (
            'pods "x" is forbidden: failed quota: q: must specify cpu for: c',
            "the ResourceQuota q requires what the object lacks",
        ),
        (
            'failed calling webhook "a.b": failed to call webhook: Post: refused',
            "the admission webhook a.b cannot be called",
        ),
        (
            'error looking up service account default/x: serviceaccount "x" not found',
            "the ServiceAccount x does not exist",
        ),
        ("minimum cpu usage per Container is 1", "a LimitRange of the namespace refuses it"),
        ("something of unknown form", "something of unknown form"),
    ],
)
def test_refusals(message, cause):
    owner = workload("StatefulSet", "db")
    found = explained(owner, event(owner, "FailedCreate", message))
    assert cause in found.cause


def test_unknown_kinds_are_not_explained():
    other = thing(
        "Thing",
        api_version="example.com/v1",
        status={"conditions": [condition("Ready", "False", "Why", "m")]},
    )
    found = explain(GroupResource("example.com", "things"), other, facts_of())
    assert (found.state, [each.text for each in found.evidence]) == ("Unknown", ["m"])


def test_workloads_and_services_whose_pods_are_ready_by_assumption():
    owner, text = deployment(complete(2)), "the image app is not simulated"
    assumed = condition("mockube.dev/NotSimulated", "True", "NotSimulated", text)
    status = {**READY, "conditions": [*READY["conditions"], assumed]}
    created = replica_set(owner)
    pods = pods_of(created, READY, status)
    found = explained(owner, created, *pods)
    cause = f"all 2 pods are updated and available, 1 of them by assumption: {text}"
    assert (found.state, found.cause) == ("NoProblem", cause)
    assert found.remedies[0].command.startswith("mockube images show ")


def test_placement_cannot_be_explained_without_the_right_to_list_nodes():
    found = explained(workload("DaemonSet", status={"desiredNumberScheduled": 0}), refused=("nodes",))
    assert found.cause.startswith("no node should run its pod; why cannot be said without the right")


def test_evicted_pod_explains_only_a_job_that_failed_by_its_pods():
    def failed(reason):
        return job({"conditions": [condition("Failed", "True", reason, "too many")]})

    write = {
        "revision": 1,
        "type": "MODIFIED",
        "author": {"subresource": "eviction", "user": "ada", "agent": "kubectl/1 x"},
    }
    for reason, is_explained in (("BackoffLimitExceeded", True), ("DeadlineExceeded", False)):
        of_job = failed(reason)
        created = event(of_job, "SuccessfulCreate", "Created pod: web-1")
        found = explained(of_job, created, writes={("web-1", ()): [write]})
        assert ("was evicted by ada with kubectl/1" in found.cause) == is_explained
    retained = failed("BackoffLimitExceeded")
    ended = pods_of(retained, {"phase": "Failed"})
    created = event(retained, "SuccessfulCreate", "Created pod: web-1")
    found = explained(retained, created, *ended, writes={("web-1", ()): [write]})
    assert "was evicted" not in found.cause
    assert "was evicted" not in explained(retained, created).cause


def test_refused_creation_of_before_is_no_cause_once_all_pods_exist():
    of_set = replica_set(deployment(), {"replicas": 2})
    refused = event(of_set, "FailedCreate", f"Error creating: {QUOTA}")
    complete_pods = pods_of(of_set, BAD_IMAGE, BAD_IMAGE)
    assert "is exhausted" not in explained(of_set, refused, *complete_pods).cause
    assert "is exhausted" in explained(of_set, refused, complete_pods[0]).cause


def test_node_that_no_kubelet_reported_or_that_gives_only_a_reason():
    silent = node_of("b")
    silent["status"] = {}
    assert explained(silent).cause == "no kubelet has reported the state of the node"
    assert explained(node_of("b", ready="False")).cause.endswith("it is not ready: KubeletNotReady")


@pytest.mark.parametrize(
    ("value", "objects", "cause"),
    [
        ("true", (), "the node a is disconnected by the annotation mockube.dev/stop-heartbeats"),
        ("fault", (), "a Fault with a partition has cut the node a off"),
    ],
)
def test_node_that_is_cut_off_on_purpose(value, objects, cause):
    node = node_of()
    node["metadata"]["annotations"] = {"mockube.dev/stop-heartbeats": value}
    assert explain(resource_of(node), node, facts_of(node, *objects)).cause == cause


def test_budget_is_loosened_by_the_field_that_it_has():
    def patch(**spec):
        strict = budget(expectedPods=2, currentHealthy=2, desiredHealthy=2)
        strict["spec"].update(spec)
        return explained(strict).remedies[0].command

    assert '{"spec":{"minAvailable":1}}' in patch(minAvailable=2)
    assert '{"spec":{"maxUnavailable":1}}' in patch(maxUnavailable=0)


def test_deployment_without_replica_set():
    missing = explained(deployment())
    assert missing.cause == "the Deployment has no ReplicaSet of its revision, and no failure is recorded"
    failed = explained(deployment(), event(deployment(), "ReplicaSetCreateError", "no quota"))
    assert failed.cause == "its ReplicaSet cannot be created: no quota"
    unread = explained(deployment(), refused=("replicasets.apps",))
    assert unread.cause == "the Deployment cannot be explained without the right to list ReplicaSets"


def test_change_of_the_control_plane_is_not_undone():
    def remedies(user):
        write = {"revision": 9, "type": "MODIFIED", "author": {"user": user}, "before": 3, "after": 0}
        writes = {("web", ("spec", "replicas")): [write]}
        found = explained(deployment(complete(0), replicas=0), writes=writes)
        return [each.text for each in found.remedies if each.text.startswith("Undo what")]

    assert remedies("ada") == ["Undo what ada changed: 3 again:"]
    assert remedies("system:serviceaccount:kube-system:horizontal-pod-autoscaler") == []


def test_memory_of_a_workload_is_raised_with_its_request():
    agent = workload("DaemonSet", "agent")
    terminated = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    status = with_state({"waiting": {"reason": "CrashLoopBackOff"}}, lastState=terminated, restartCount=2)

    def command(request):
        resources = {"limits": {"memory": "64Mi"}, "requests": {"memory": request}}
        pod = pod_of(metadata=owned(agent), status=status, container={"resources": resources})
        return next(
            each.command for each in explained(pod, agent).remedies if "set resources" in each.command
        )

    assert command("64Mi").endswith("--limits=memory=128Mi --requests=memory=128Mi")
    assert command("32Mi").endswith("--limits=memory=128Mi")
