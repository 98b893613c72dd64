"""Job: which pods have failed and when, what the policies match, which pods are next, and what is counted."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.client.podview import PodView
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager.controllers.job import (
    backoff,
    end_conditions,
    index_ranges,
    monitor,
    pods,
    policies,
    tracking,
)
from mockube.controller_manager.controllers.job.backoff import Failures
from mockube.controller_manager.controllers.job.state import (
    failure_count,
    index_of,
    is_failed,
    replaces_failed_only,
    state_of,
)
from tests.support.controllers.jobs import indexed, job
from tests.support.metric_samples import sample_value

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TRACKED = "batch.kubernetes.io/job-tracking"
PREFIX = "batch.kubernetes.io/job-"


def at(seconds):
    return format_time(NOW + timedelta(seconds=seconds))


def pod(
    name="p",
    phase="Pending",
    *,
    index=None,
    tracked=True,
    deleting=False,
    failures=None,
    ignored=None,
    spec=None,
    created=None,
    **status,
):
    annotations = {
        "completion-index": index,
        "index-failure-count": failures,
        "index-ignored-failure-count": ignored,
    }
    metadata = {
        "name": name,
        "namespace": "d",
        "uid": f"uid-{name}",
        "finalizers": [TRACKED] if tracked else [],
        "annotations": {PREFIX + key: str(value) for key, value in annotations.items() if value is not None},
    }
    if deleting:
        metadata |= {"deletionTimestamp": at(0), "deletionGracePeriodSeconds": 30}
    if created is not None:
        metadata["creationTimestamp"] = at(created)
    return PodView.of({"metadata": metadata, "spec": spec or {}, "status": {"phase": phase, **status}})


def ended(seconds, code=1, name="c"):
    finished = {} if seconds is None else {"finishedAt": at(seconds)}
    return {"name": name, "state": {"terminated": {"exitCode": code, **finished}}}


RUNS = {"name": "c", "state": {"running": {}}}
SIDECAR = {"initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]}
UNREADY = {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": at(-7)}]}
READY = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at(-7)}]}


@pytest.mark.parametrize(
    ("view", "seconds"),
    [
        (pod(containerStatuses=[ended(-5), ended(-3)]), -3),
        (pod(containerStatuses=[ended(-5), ended(None)], created=-60), -60),
        (pod(containerStatuses=[ended(-5), RUNS], created=-60), -60),
        (pod(containerStatuses=[ended(-5)], initContainerStatuses=[ended(-1, name="s")], spec=SIDECAR), -1),
        (pod(containerStatuses=[ended(-5)], initContainerStatuses=[ended(-1, name="i")], spec=SIDECAR), -5),
        (pod(containerStatuses=[ended(-5)], **UNREADY), -5),
        (pod(**UNREADY, deleting=True), -7),
        (pod(**READY, created=-60), -60),
        (pod(**READY, deleting=True, created=-60), -30),
        (pod(conditions=[{"type": "Ready", "status": "False"}], created=-60), -60),
        (pod(created=-60), -60),
    ],
)
def test_time_at_which_a_pod_ended(view, seconds):
    assert backoff.finish_time(view) == NOW + timedelta(seconds=seconds)


def test_pod_without_any_time_ended_first():
    assert backoff.finish_time(pod()) == datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("failures", "ago", "left"),
    [(0, 0, 0), (1, 0, 10), (1, 4, 6), (1, 11, 0), (2, 0, 20), (6, 0, 320), (7, 0, 600), (50, 0, 600)],
)
def test_rest_of_a_backoff(failures, ago, left):
    assert backoff.backoff_left(failures, NOW - timedelta(seconds=ago), NOW) == timedelta(seconds=left)


def test_failures_since_the_last_success():
    first, second, success = (pod(containerStatuses=[ended(seconds)]) for seconds in (-9, -5, -7))
    memory = Failures(3, NOW - timedelta(seconds=60))
    assert memory.with_pods([], []) is memory
    assert memory.with_pods([], [second, first]) == Failures(5, NOW - timedelta(seconds=5))
    assert memory.with_pods([success], [second, first]) == Failures(1, NOW - timedelta(seconds=5))
    assert memory.with_pods([second], [first]) == Failures()
    assert Failures(1).backoff_left_at(NOW) == timedelta(seconds=10)
    assert memory.backoff_left_at(NOW) == timedelta()


@pytest.mark.parametrize(("seconds", "shortest"), [([3, 2, 0, -1], 2), ([0], None), ([], None)])
def test_shortest_span(seconds, shortest):
    expected = None if shortest is None else timedelta(seconds=shortest)
    assert backoff.shortest_span(timedelta(seconds=each) for each in seconds) == expected


# --- policies


@pytest.mark.parametrize(
    ("requirement", "container", "matches"),
    [
        ({"operator": "In", "values": [3]}, ended(0, 3), True),
        ({"operator": "In", "values": [3]}, ended(0, 4), False),
        ({"operator": "In", "values": [0]}, ended(0, 0), False),
        ({"operator": "NotIn", "values": [3]}, ended(0, 4), True),
        ({"operator": "NotIn", "values": [3]}, ended(0, 3), False),
        ({"operator": "NotIn", "values": [3]}, ended(0, 0), False),
        ({"operator": "NotIn"}, ended(0, 4), True),
        ({"operator": "Other", "values": [3]}, ended(0, 3), False),
        ({"operator": "In", "values": [3], "containerName": "c"}, ended(0, 3), True),
        ({"operator": "In", "values": [3], "containerName": "d"}, ended(0, 3), False),
        ({"operator": "NotIn", "values": [3]}, RUNS, False),
        ({"operator": "NotIn", "values": [3]}, {"name": "c"}, False),
    ],
)
def test_exit_code_that_a_rule_matches(requirement, container, matches):
    assert policies._matches(requirement, container) is matches


DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


@pytest.mark.parametrize(
    ("rules", "status", "action", "message"),
    [
        ([], {}, "", ""),
        (
            [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}],
            {"containerStatuses": [RUNS], "initContainerStatuses": [ended(0, 3, "i")]},
            "FailJob",
            "Container i for pod d/p failed with exit code 3 matching FailJob rule at index 0",
        ),
        (
            [
                {"action": "Ignore", "onPodConditions": [{"type": "Other"}]},
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]},
            ],
            {"conditions": [{"type": "Ready", "status": "True"}, DISRUPTED]},
            "FailJob",
            "Pod d/p has condition DisruptionTarget matching FailJob rule at index 1",
        ),
        (
            [{"action": "Ignore", "onPodConditions": [DISRUPTED]}],
            {"conditions": [DISRUPTED]},
            "Ignore",
            "",
        ),
        ([{"action": "Ignore", "onPodConditions": [DISRUPTED]}], {"conditions": [{**DISRUPTED, "status": "False"}]}, "", ""),
        ([{"action": "Ignore", "onPodConditions": [{**DISRUPTED, "status": "False"}]}], {"conditions": [DISRUPTED]}, "", ""),
        ([{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}], {"containerStatuses": [RUNS]}, "", ""),
    ],
)  # fmt: skip
def test_rule_that_matches_a_failed_pod(rules, status, action, message):
    failure = policies.pod_failure(job(podFailurePolicy={"rules": rules}), pod(phase="Failed", **status))
    assert (failure.action, failure.message, failure.counts) == (action, message, action != "Ignore")


@pytest.mark.parametrize(
    ("rules", "succeeded", "message"),
    [
        ([{"succeededCount": 1}], (), ""),
        ([{"succeededCount": 2}], ((0, 0),), ""),
        ([{"succeededCount": 2}], ((0, 1),), "Matched rules at index 0"),
        ([{"succeededCount": 3}, {"succeededCount": 1}], ((0, 1),), "Matched rules at index 1"),
        ([{"succeededIndexes": "0,2"}], ((0, 1),), ""),
        ([{"succeededIndexes": "0,2"}], ((0, 2),), "Matched rules at index 0"),
        ([{"succeededIndexes": "0,2", "succeededCount": 1}], ((1, 2),), "Matched rules at index 0"),
        ([{"succeededIndexes": "0,2", "succeededCount": 1}], ((1, 1),), ""),
        ([{"succeededIndexes": "9"}], ((0, 2),), ""),
        ([{"succeededIndexes": "9", "succeededCount": 0}], ((0, 2),), ""),
        ([{}], ((0, 2),), ""),
        ([], ((0, 2),), ""),
    ],
)
def test_rule_of_the_success_policy_that_is_met(rules, succeeded, message):
    tree = indexed(completions=5, successPolicy={"rules": rules})
    assert policies.success_message(tree, succeeded) == message


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ((), ((0, 3),), 0),
        (((0, 3),), (), 0),
        (((0, 3),), ((2, 5),), 2),
        (((2, 5),), ((0, 3),), 2),
        (((0, 1), (4, 9)), ((1, 4), (6, 7), (9, 12)), 5),
        (((0, 3),), ((0, 3), (5, 6)), 4),
    ],
)
def test_indexes_that_are_in_both_sets(one, other, common):
    assert index_ranges.overlap(one, other) == common


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        (((0, 1),), ((2, 3),), ((0, 3),)),
        (((0, 1),), ((3, 4),), ((0, 1), (3, 4))),
        (((0, 9),), ((2, 3),), ((0, 9),)),
        (((0, 3),), ((2, 5),), ((0, 5),)),
        ((), (), ()),
    ],
)
def test_sets_are_merged(one, other, merged):
    assert index_ranges.merge(one, other) == merged


@pytest.mark.parametrize(
    ("intervals", "count", "completions", "missing"),
    [
        ((), 2, 5, [0, 1]),
        (((0, 0), (2, 2)), 2, 5, [1, 3]),
        (((0, 0), (2, 2)), 9, 5, [1, 3, 4]),
        (((1, 9),), 9, 5, [0]),
        (((7, 9),), 9, 5, [0, 1, 2, 3, 4]),
    ],
)
def test_lowest_missing_indexes(intervals, count, completions, missing):
    assert index_ranges.first_missing(intervals, count, completions) == missing


# --- the state


@pytest.mark.parametrize(
    ("view", "spec", "fails"),
    [
        (pod(phase="Failed"), {}, True),
        (pod(phase="Failed", deleting=True), {"podReplacementPolicy": "Failed"}, True),
        (pod(phase="Running", deleting=True), {}, True),
        (pod(phase="Running", deleting=True), {"podReplacementPolicy": "Failed"}, False),
        (pod(phase="Running", deleting=True), {"podFailurePolicy": {}}, False),
        (pod(phase="Succeeded", deleting=True), {}, False),
        (pod(phase="Running"), {}, False),
    ],
)
def test_pod_that_counts_as_failed(view, spec, fails):
    assert is_failed(job(**spec), view) is fails


def test_pods_are_replaced_after_their_failure_only():
    for spec, expected in (
        ({}, False),
        ({"podReplacementPolicy": "Failed"}, True),
        ({"podFailurePolicy": {}}, True),
    ):
        assert replaces_failed_only(job(**spec)) is expected


@pytest.mark.parametrize(("text", "index"), [(None, None), ("3", 3), ("-1", None), ("x", None), ("0", 0)])
def test_index_of_a_pod(text, index):
    assert index_of(pod(index=text)) == index


@pytest.mark.parametrize(("text", "count"), [(None, 0), ("3", 3), ("-1", 0), ("x", 0), (str(2**31), 0)])
def test_failures_of_the_index_of_a_pod(text, count):
    assert failure_count(pod(failures=text)) == count


def state(tree, *views, **status):
    return state_of({**tree, "status": status}, [*views], Failures())


def test_pods_that_have_ended_are_counted_once():
    uncounted = {"succeeded": ["uid-s1"], "failed": ["uid-f1"]}
    found = state(
        job(completions=9),
        pod("s1", "Succeeded"),
        pod("s2", "Succeeded"),
        pod("s3", "Succeeded", tracked=False),
        pod("f1", "Failed"),
        pod("f2", "Failed"),
        pod("gone", "Running", deleting=True),
        pod("over", "Succeeded", deleting=True),
        pod("runs", "Running"),
        succeeded=10,
        failed=20,
        uncountedTerminatedPods=uncounted,
    )
    assert (found.succeeded, found.failed) == (10 + 1 + 2, 20 + 1 + 2)
    assert ([view.key.name for view in found.active], found.terminating, found.ready) == (["runs"], 1, 0)
    assert (found.failures.count, found.failed_indexes, found.replaceable) == (0, None, {})


def test_ignored_failures_do_not_count():
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}
    tree = job(podFailurePolicy={"rules": [rule]})
    views = [pod(str(code), "Failed", containerStatuses=[ended(0, code)]) for code in (1, 42)]
    assert state(tree, *views).failed == 1


def per_index(limit=1, **spec):
    return indexed(completions=5, backoffLimitPerIndex=limit, **spec)


FAIL_INDEX = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}}
IGNORE = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}
POLICY = {"podFailurePolicy": {"rules": [FAIL_INDEX, IGNORE]}}


@pytest.mark.parametrize(
    ("view", "spec", "fails", "is_replaced"),
    [
        (pod(phase="Failed", index=3, failures=0), {}, False, True),
        (pod(phase="Failed", index=3, failures=1), {}, True, False),
        (pod(phase="Failed", index=3, failures=1, tracked=False), {}, False, False),
        (pod(phase="Failed", index=5, failures=1), {}, False, False),
        (pod(phase="Failed", failures=1), {}, False, False),
        (pod(phase="Running", index=3, failures=1), {}, False, False),
        (pod(phase="Succeeded", index=3, failures=1), {}, False, False),
        (pod(phase="Failed", index=3, containerStatuses=[ended(0, 7)]), POLICY, True, False),
        (pod(phase="Running", index=3, deleting=True, containerStatuses=[ended(0, 7)]), POLICY, False, False),
        (pod(phase="Failed", index=3, failures=1, containerStatuses=[ended(0, 42)]), POLICY, False, True),
    ],
)
def test_index_that_fails_or_is_retried(view, spec, fails, is_replaced):
    found = state(per_index(**spec), view)
    assert found.failed_indexes == (((3, 3),) if fails else ())
    assert found.replaceable == ({3: view} if is_replaced else {})


def test_indexes_add_to_those_of_the_status():
    views = [
        pod("a", "Succeeded", index=1),
        pod("b", "Succeeded", index=7),
        pod("c", "Succeeded", index=2, tracked=False),
    ]
    found = state(per_index(), *views, completedIndexes="0", failedIndexes="4")
    assert (found.succeeded_indexes, found.failed_indexes, found.succeeded) == (((0, 1),), ((4, 4),), 2)
    assert found.counted_indexes == ((0, 0),)
    plain = state(indexed(completions=5), *views, completedIndexes="0", failedIndexes="4")
    assert (plain.failed_indexes, plain.replaceable) == (None, {})


@pytest.mark.parametrize(
    ("views", "replaced"),
    [
        ([pod("a", "Failed", index=0), pod("b", "Running", index=0)], None),
        ([pod("a", "Failed", index=3), pod("b", "Succeeded", index=3)], None),
        ([pod("a", "Failed", index=0, ignored=1), pod("b", "Failed", index=0)], "a"),
        ([pod("a", "Failed", index=0), pod("b", "Failed", index=0, ignored=1)], "b"),
        ([pod("a", "Failed", index=0, created=-5), pod("b", "Failed", index=0, created=-9)], "a"),
        ([pod("a", "Failed", index=0, created=-9), pod("b", "Failed", index=0, created=-5)], "b"),
        ([pod("a", "Failed", index=0, created=-9), pod("b", "Failed", index=0, created=-9)], "b"),
        ([pod("a", "Failed", index=0, ignored=1, created=-9), pod("b", "Failed", index=0, created=-5)], "a"),
    ],
)
def test_last_failed_pod_of_an_index_is_replaced(views, replaced):
    found = state(per_index(limit=5), *views)
    assert [view.key.name for view in found.replaceable.values()] == ([replaced] if replaced else [])


def test_index_that_has_failed_is_not_retried():
    assert state(per_index(limit=5), pod("a", "Failed", index=0), failedIndexes="0").replaceable == {}


# --- the pods that are created or deleted


@pytest.mark.parametrize(
    ("tree", "views", "at_least", "names"),
    [
        (job(), [pod("a"), pod("b")], 0, []),
        (job(), [pod("a"), pod("b", "Running")], 1, ["a"]),
        (job(), [pod("a", index=9)], 0, []),
        (indexed(completions=2), [pod("a", index=0), pod("b", index=2), pod("c")], 0, ["b", "c"]),
        (indexed(completions=2), [pod("a", index=0), pod("b", "Running", index=0)], 0, ["a"]),
        (indexed(completions=2), [pod("a", "Running", index=0), pod("b", index=1), pod("c", index=2)], 2, ["b", "c"]),
        (indexed(completions=2), [pod("a", index=0), pod("c", index=2), pod("d", index=3)], 1, ["c", "d"]),
    ],
)  # fmt: skip
def test_pods_to_delete(tree, views, at_least, names):
    found = pods._pods_to_delete(state(tree, *views), at_least, NOW)
    assert sorted(view.key.name for view in found) == names


@pytest.mark.parametrize(
    ("spec", "views", "status", "desired"),
    [
        ({"completions": None, "parallelism": 3}, [], {}, 3),
        ({"completions": None, "parallelism": 3}, [pod()], {"succeeded": 1}, 1),
        ({"completions": 5, "parallelism": 3}, [], {"succeeded": 1}, 3),
        ({"completions": 5, "parallelism": 3}, [], {"succeeded": 4}, 1),
        ({"completions": 5, "parallelism": 3}, [], {"succeeded": 9}, 0),
    ],
)
def test_desired_active_pods(spec, views, status, desired):
    assert pods._desired_active(state(job(**spec), *views, **status)) == desired


@pytest.mark.parametrize(
    ("tree", "views", "status", "indexes"),
    [
        (per_index(), [], {}, [0, 1, 2]),
        (per_index(), [pod("a", index=0)], {"completedIndexes": "1", "failedIndexes": "2"}, [3, 4]),
        (per_index(), [pod("a", "Running", index=0, deleting=True)], {}, [0, 1, 2]),
        (per_index(podReplacementPolicy="Failed"), [pod("a", "Running", index=0, deleting=True)], {}, [1, 2, 3]),
        (per_index(podReplacementPolicy="Failed"), [pod("a", "Failed", index=0, deleting=True)], {}, [0, 1, 2]),
        (per_index(podReplacementPolicy="Failed"), [pod("a", "Failed", index=0)], {}, [0, 1, 2]),
        (indexed(completions=2), [], {"failedIndexes": "0"}, [0, 1]),
    ],
)  # fmt: skip
def test_indexes_of_the_next_pods(tree, views, status, indexes):
    assert pods._first_pending_indexes(state(tree, *views, **status), 3) == indexes


@pytest.mark.parametrize(
    ("tree", "views", "annotations"),
    [
        (indexed(completions=5), [], {}),
        (per_index(), [], {"index-failure-count": "0"}),
        (per_index(9), [pod("a", "Failed", index=0, failures=2)], {"index-failure-count": "3"}),
        (
            per_index(9, **POLICY),
            [pod("a", "Failed", index=0, failures=2, ignored=1, containerStatuses=[ended(0, 42)])],
            {"index-failure-count": "2", "index-ignored-failure-count": "2"},
        ),
        (
            per_index(9),
            [pod("a", "Failed", index=0, ignored=1)],
            {"index-failure-count": "1", "index-ignored-failure-count": "1"},
        ),
    ],
)
def test_failures_that_a_successor_inherits(tree, views, annotations):
    found = pods._failure_count_annotations(state(tree, *views), 0)
    assert found == {PREFIX + key: value for key, value in annotations.items()}


@pytest.mark.parametrize(("seconds", "failures", "left"), [(0, 0, 10), (-4, 1, 16), (-60, 0, 0)])
def test_index_is_retried_after_its_backoff(seconds, failures, left):
    view = pod("a", "Failed", index=0, failures=failures, containerStatuses=[ended(seconds)])
    change = pods.pod_change(state(per_index(9, parallelism=1), view), NOW)
    assert (change.requeue_after or timedelta()) == timedelta(seconds=left)
    assert len(change.actions) == int(not left)


def test_variable_with_the_index_is_added_once():
    own = {"name": "c", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "7"}]}
    assert pods._with_index_in_env(own) is own
    added = pods._with_index_in_env({"name": "c", "env": [{"name": "A"}]})["env"]
    assert [each["name"] for each in added] == ["A", "JOB_COMPLETION_INDEX"]
    spec = pods._with_index_in_containers({"initContainers": [{"name": "i"}], "containers": []})
    assert ([*spec], len(spec["initContainers"][0]["env"])) == (["initContainers", "containers"], 1)


def test_names_of_indexed_pods_have_a_maximal_length():
    tree = indexed(name="n" * 63, completions=200)
    found = pods._indexed_pod(state(tree), 123)["metadata"]["generateName"]
    assert (found, len(found)) == (f"{'n' * 53}-123-", 58)


def test_suspended_job_deletes_its_pods_however_many():
    views = [pod(str(number)) for number in range(3)]
    for suspend, count in ((True, 3), (False, 2)):
        change = pods.pod_change(state(job(suspend=suspend), *views), NOW)
        assert [len(action.objects) for action in change.actions] == [count, count]
    assert pods.pod_change(state(job(suspend=True)), NOW).actions == ()


# --- the end


def condition(type_, status="True", **fields):
    return {"type": type_, "status": status, **fields}


@pytest.mark.parametrize(
    ("conditions", "end"),
    [
        ([], None),
        ([condition("SuccessCriteriaMet")], "SuccessCriteriaMet"),
        ([condition("SuccessCriteriaMet", "False")], None),
        ([condition("FailureTarget", reason="r", message="m")], "Failed"),
        ([condition("FailureTarget", "False")], None),
    ],
)
def test_end_that_an_earlier_reconciliation_found(conditions, end):
    found = end_conditions.end_of(state(job(), conditions=conditions), NOW)
    assert (None if found is None else found["type"]) == end
    assert end_conditions.is_success(found) is (end == "SuccessCriteriaMet")


@pytest.mark.parametrize(
    ("tree", "views", "status", "reason"),
    [
        (job(backoffLimit=2), [], {"failed": 2}, ""),
        (job(backoffLimit=2), [], {"failed": 3}, "BackoffLimitExceeded"),
        (job(activeDeadlineSeconds=5), [], {"startTime": at(-4)}, ""),
        (job(activeDeadlineSeconds=5), [], {"startTime": at(-5)}, "DeadlineExceeded"),
        (job(activeDeadlineSeconds=5), [], {}, ""),
        (job(activeDeadlineSeconds=5, suspend=True), [], {"startTime": at(-5)}, ""),
        (per_index(), [], {"failedIndexes": "0-3"}, ""),
        (per_index(), [], {"failedIndexes": "0-4"}, "FailedIndexes"),
        (per_index(), [], {"failedIndexes": "0", "completedIndexes": "1-4"}, "FailedIndexes"),
        (per_index(), [], {"completedIndexes": "0-4"}, ""),
        (per_index(maxFailedIndexes=1), [], {"failedIndexes": "0"}, ""),
        (per_index(maxFailedIndexes=1), [], {"failedIndexes": "0,1"}, "MaxFailedIndexesExceeded"),
        (per_index(maxFailedIndexes=0), [], {}, ""),
    ],
)
def test_failure_of_a_job(tree, views, status, reason):
    found = end_conditions.end_of(state(tree, *views, **status), NOW)
    assert ("" if found is None else found["reason"]) == reason


def test_rule_that_fails_the_job_needs_a_failed_pod():
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}
    tree = job(podFailurePolicy={"rules": [rule]})
    for phase, reason in (("Running", None), ("Failed", "PodFailurePolicy")):
        found = end_conditions.end_of(state(tree, pod("a", phase, containerStatuses=[ended(0, 3)])), NOW)
        assert (found and found["reason"]) == reason


@pytest.mark.parametrize(
    ("policy", "phase", "limit", "restarts", "exceeds"),
    [
        ("OnFailure", "Running", 3, (2, 1), True),
        ("OnFailure", "Pending", 3, (3, 0), True),
        ("OnFailure", "Running", 3, (1, 1), False),
        ("OnFailure", "Failed", 3, (2, 1), False),
        ("Never", "Running", 3, (2, 1), False),
        ("OnFailure", "Running", 0, (0, 1), True),
        ("OnFailure", "Running", 0, (0, 0), False),
    ],
)
def test_restarts_that_exceed_the_limit(policy, phase, limit, restarts, exceeds):
    first, second = ({"name": "c", "restartCount": count} for count in restarts)
    view = pod("a", phase, initContainerStatuses=[first], containerStatuses=[second])
    tree = job(backoffLimit=limit, template={"spec": {"restartPolicy": policy}})
    assert end_conditions._exceeds_restart_limit(tree, [view, pod("b", phase)]) is exceeds


@pytest.mark.parametrize(
    ("completions", "succeeded", "active", "enough"),
    [(2, 2, 0, True), (2, 1, 0, False), (2, 2, 1, False), (None, 1, 0, True), (None, 0, 0, False)],
)
def test_job_that_has_enough_successes(completions, succeeded, active, enough):
    found = state(job(completions=completions), succeeded=succeeded)
    assert end_conditions.has_enough_successes(found, active) is enough


@pytest.mark.parametrize(
    ("present", "new", "types"),
    [
        ([], condition("A", reason="r", message=""), ["A True r"]),
        ([], condition("A", "False", reason="r", message=""), []),
        ([condition("A", reason="r"), condition("B")], condition("A", reason="r", message=""), None),
        ([condition("A", reason="r"), condition("B")], condition("A", reason="s", message=""), ["A True s", "B True None"]),
        ([condition("A", reason="r")], condition("A", "False", reason="r", message=""), ["A False r"]),
        ([condition("A", reason="r")], condition("A", reason="r", message="m"), ["A True r"]),
    ],
)  # fmt: skip
def test_condition_is_added_or_replaced(present, new, types):
    found = end_conditions.with_condition(present, new)
    if types is None:
        assert found is present
    else:
        assert [f"{each['type']} {each['status']} {each.get('reason')}" for each in found] == types
        assert found is not present or not types


# --- counting


def progress(found, end=None, **status):
    tracked = {view.uid for view in found.pods if TRACKED in view.object["metadata"]["finalizers"]}
    return tracking.JobProgress(state=found, status=status, end_condition=end, tracked_uids=tracked)


@pytest.mark.parametrize(
    ("tree", "views", "end", "removed", "listed"),
    [
        (job(), [pod("a", "Succeeded"), pod("b", "Failed"), pod("c")], None, "ab", {"succeeded": ["uid-a"], "failed": ["uid-b"]}),
        (job(), [pod("a", "Succeeded", tracked=False)], None, "", {}),
        (job(), [pod("a")], condition("Failed"), "a", {"failed": ["uid-a"]}),
        (job(), [pod("a")], condition("Complete"), "a", {}),
        (job(), [pod("a")], condition("SuccessCriteriaMet"), "a", {}),
        (job(**POLICY), [pod("a", "Failed", containerStatuses=[ended(0, 42)])], None, "a", {}),
        (indexed(completions=5), [pod("b", "Succeeded", index=1), pod("a", "Failed", index=0)], None, "ab", {"failed": ["uid-a"]}),
        (indexed(completions=5), [pod("a", "Failed", index=7), pod("b", "Failed")], None, "ba", {}),
        (per_index(9), [pod("a", "Failed", index=0)], None, "", {}),
        (per_index(9), [pod("a", "Failed")], None, "a", {}),
        (per_index(9), [pod("a", "Failed", index=0), pod("b", "Failed", index=0, ignored=1)], None, "a", {"failed": ["uid-a"]}),
    ],
)  # fmt: skip
def test_pods_that_are_listed_and_lose_their_finalizer(tree, views, end, removed, listed):
    found, status, is_full = tracking._list_uncounted(progress(state(tree, *views), end))
    assert ("".join(view.key.name for view in found), is_full) == (removed, False)
    assert status["uncountedTerminatedPods"] == listed


def test_pods_of_a_deleted_job_lose_their_finalizer():
    tree = job()
    tree["metadata"]["deletionTimestamp"] = at(0)
    found, status, _ = tracking._list_uncounted(progress(state(tree, pod("a"))))
    assert (len(found), status["uncountedTerminatedPods"]) == (1, {})


def test_failed_pod_that_is_listed_stays_failed():
    listed = {"failed": ["uid-a"]}
    subject = progress(
        state(job(), pod("a", "Succeeded"), uncountedTerminatedPods=listed), uncountedTerminatedPods=listed
    )
    _, status, _ = tracking._list_uncounted(subject)
    assert status["uncountedTerminatedPods"] == listed


def test_list_has_a_limit(monkeypatch):
    monkeypatch.setattr(tracking, "MAX_UNCOUNTED", 2)
    views = [pod(name, "Succeeded") for name in "abc"]
    found, status, is_full = tracking._list_uncounted(progress(state(job(completions=9), *views)))
    assert (len(found), is_full, status["uncountedTerminatedPods"]) == (
        2,
        True,
        {"succeeded": ["uid-a", "uid-b"]},
    )
    views = [pod(name, "Succeeded", index=index) for index, name in enumerate("abc")]
    tree = indexed(completions=5)
    found, _, is_full = tracking._list_uncounted(progress(state(tree, *views, completedIndexes="0")))
    assert (len(found), is_full) == (3, True)


def test_status_of_an_indexed_job_has_its_indexes():
    view = pod("a", "Succeeded", index=1)
    for tree, failed in ((indexed(completions=5), None), (per_index(), "3")):
        found = state(tree, view, completedIndexes="0", failedIndexes="3")
        _, status, _ = tracking._list_uncounted(progress(found))
        assert (status["succeeded"], status["completedIndexes"], status.get("failedIndexes")) == (
            2,
            "0,1",
            failed,
        )


def test_released_pods_are_counted():
    uncounted = {"succeeded": ["a", "b"], "failed": ["c"]}
    status = {"succeeded": 1, "uncountedTerminatedPods": uncounted}
    assert tracking.count_released_pods(status, {"b"}) == {
        "succeeded": 2,
        "failed": 1,
        "uncountedTerminatedPods": {"succeeded": ["b"]},
    }
    assert tracking.count_released_pods({}, set()) == {"uncountedTerminatedPods": {}}


@pytest.mark.parametrize(
    ("end", "status", "is_full", "can_finish"),
    [
        (None, {}, False, False),
        (condition("Failed"), {}, False, True),
        (condition("Failed"), {}, True, False),
        (condition("Failed"), {"terminating": 1}, False, False),
        (condition("Failed"), {"uncountedTerminatedPods": {"failed": ["a"]}}, False, False),
    ],
)
def test_job_finishes_when_all_pods_are_counted(end, status, is_full, can_finish):
    subject = tracking.JobProgress(
        state=state(job()), status={}, end_condition=end, tracked_uids=(), is_full=is_full
    )
    assert tracking._can_finish(subject, status) is can_finish


@pytest.mark.parametrize(
    ("completions", "end", "succeeded", "reasons"),
    [
        (2, "Complete", 2, ["Completed"]),
        (2, "Complete", 3, ["TooManySucceededPods", "Completed"]),
        (None, "Complete", 3, ["Completed"]),
        (2, "Failed", 3, ["r"]),
    ],
)
def test_events_at_the_end(completions, end, succeeded, reasons):
    found = state(job(completions=completions))
    final = condition(end, reason="r", message="m", lastTransitionTime=at(0))
    events = tracking._end_events(progress(found, final), {"succeeded": succeeded})
    assert [event.reason for event in events] == reasons
    status = tracking._with_end_condition({}, final)
    assert status.get("completionTime") == (at(0) if end == "Complete" else None)


@pytest.mark.parametrize(
    "field", ["active", "succeeded", "failed", "completedIndexes", "conditions", "uncountedTerminatedPods"]
)
def test_empty_field_is_as_an_absent_one(field):
    for empty in (0, "", [], {}):
        assert tracking._without_empty_fields({field: empty, "ready": 0}) == {"ready": 0}
    assert tracking._without_empty_fields({field: 1}) == {field: 1}


# --- metrics


class Outcome:
    def __init__(self, creates=0, deletes=0, updates=(), error=None):
        self.writes = {
            "Create": [None] * creates,
            "Delete": [None] * deletes,
            "Update": [Response(each) for each in updates],
        }
        self.error = error

    def of(self, kind):
        return self.writes[kind.__name__]


class Response:
    def __init__(self, response):
        self.response = response


def metrics_of(tree, outcome):
    registry = MetricsRegistry()
    monitor.JobMonitor(registry).observe(tree, outcome, 0.5, NOW)

    def value(name, **labels):
        return sample_value(registry, f"job_controller_{name}", labels) or 0

    return value


@pytest.mark.parametrize(
    ("outcome", "result", "action"),
    [
        (Outcome(), "success", "tracking"),
        (Outcome(creates=1), "success", "pods_created"),
        (Outcome(creates=1, deletes=1), "success", "pods_deleted"),
        (Outcome(error=ValueError()), "error", "tracking"),
    ],
)
def test_synchronization_is_counted(outcome, result, action):
    value = metrics_of(job(), outcome)
    assert value("job_syncs_total", completion_mode="NonIndexed", result=result, action=action) == 1


@pytest.mark.parametrize(
    "tree", [None, {**job(), "status": {"conditions": [condition("Failed")]}}, job(managedBy="a/b")]
)
def test_other_jobs_are_not_counted(tree):
    value = metrics_of(tree, Outcome())
    assert value("job_syncs_total", completion_mode="NonIndexed", result="success", action="tracking") == 0


@pytest.mark.parametrize(
    ("spec", "status", "reason"),
    [
        ({}, {}, "new"),
        ({}, {"failed": 1}, "recreate_terminating_or_failed"),
        ({}, {"terminating": 1}, "recreate_terminating_or_failed"),
        ({"podReplacementPolicy": "Failed"}, {"failed": 1}, "recreate_failed"),
        ({"podReplacementPolicy": "Failed"}, {"terminating": 1}, "recreate_terminating_or_failed"),
        ({"podReplacementPolicy": "Failed"}, {}, "new"),
    ],
)
def test_created_pods_are_counted_by_reason(spec, status, reason):
    value = metrics_of({**job(**spec), "status": status}, Outcome(creates=2))
    assert value("job_pods_creation_total", reason=reason, status="succeeded") == 2


def test_finished_pods_indexes_and_jobs_are_counted_once():
    tree = per_index()
    first = {**tree, "status": {"completedIndexes": "0-1", "failedIndexes": "2", "failed": 3, "succeeded": 9}}
    final = {**first, "status": {**first["status"], "conditions": [condition("Failed", reason="r")]}}
    value = metrics_of(tree, Outcome(updates=[first, None, final, final]))
    assert value("job_finished_indexes_total", status="succeeded", backoffLimit="perIndex") == 2
    assert value("job_finished_indexes_total", status="failed", backoffLimit="perIndex") == 1
    assert value("job_pods_finished_total", completion_mode="Indexed", result="succeeded") == 2
    assert value("job_pods_finished_total", completion_mode="Indexed", result="failed") == 3
    assert value("jobs_finished_total", completion_mode="Indexed", result="failed", reason="r") == 1
    value = metrics_of(job(), Outcome(updates=[{**job(), "status": {"succeeded": 2}}]))
    assert value("job_pods_finished_total", completion_mode="NonIndexed", result="succeeded") == 2
    plain = indexed(completions=5)
    value = metrics_of(plain, Outcome(updates=[{**plain, "status": {"completedIndexes": "0"}}]))
    assert value("job_finished_indexes_total", status="succeeded", backoffLimit="global") == 1
