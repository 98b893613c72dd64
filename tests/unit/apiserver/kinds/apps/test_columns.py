"""Printer columns of the groups apps, batch, autoscaling and policy."""

from functools import partial

import pytest

from tests.support.server.printed_columns import printed_cells, time_ago

apps = partial(printed_cells, "apps")
batch = partial(printed_cells, "batch")

TEMPLATE = {"spec": {"containers": [{"name": "one", "image": "i:1"}, {"name": "two", "image": "i:2"}]}}
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "a", "operator": "In", "values": ["2", "1"]}],
}
WRONG_SELECTOR = {"matchExpressions": [{"key": "a", "operator": "Almost"}]}


def test_deployment_columns():
    tree = {
        "spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
        "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
    }
    assert list(apps("Deployment", tree).values()) == [
        "x", "2/3", 1, 2, "5m", "one,two", "i:1,i:2", "a in (1,2),app=web",
    ]  # fmt: skip


def test_replica_set_columns():
    tree = {
        "spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
        "status": {"replicas": 2, "readyReplicas": 1},
    }
    assert list(apps("ReplicaSet", tree).values()) == [
        "x", 3, 2, 1, "5m", "one,two", "i:1,i:2", "a in (1,2),app=web",
    ]  # fmt: skip


def test_stateful_set_columns():
    tree = {"spec": {"replicas": 3, "template": TEMPLATE}, "status": {"readyReplicas": 2}}
    assert list(apps("StatefulSet", tree).values()) == ["x", "2/3", "5m", "one,two", "i:1,i:2"]


def test_daemon_set_columns():
    tree = {
        "spec": {"selector": SELECTOR, "template": {"spec": {"nodeSelector": {"disk": "ssd"}}}},
        "status": {
            "desiredNumberScheduled": 5,
            "currentNumberScheduled": 4,
            "numberReady": 3,
            "updatedNumberScheduled": 2,
            "numberAvailable": 1,
        },
    }
    assert list(apps("DaemonSet", tree).values()) == [
        "x", 5, 4, 3, 2, 1, "disk=ssd", "5m", "", "", "a in (1,2),app=web",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "selector", "expected"),
    [
        ("Deployment", None, ""),
        ("Deployment", {}, ""),
        ("Deployment", WRONG_SELECTOR, "<invalid>"),
        ("ReplicaSet", None, "<none>"),
        ("ReplicaSet", {}, "<none>"),
        ("ReplicaSet", WRONG_SELECTOR, "<error>"),
    ],
)
def test_empty_and_invalid_selector_columns(kind, selector, expected):
    assert apps(kind, {"spec": {"selector": selector}})["Selector"] == expected


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        pytest.param([], "<none>", id="without owner"),
        pytest.param(
            [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}], "<none>", id="only owned"
        ),
        pytest.param(
            [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}],
            "statefulset.apps/db",
            id="of a group",
        ),
        pytest.param(
            [{"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}],
            "pod/p",
            id="of the core group",
        ),
    ],
)
def test_controller_revision_columns(owners, expected):
    cells = apps("ControllerRevision", {"metadata": {"ownerReferences": owners}, "revision": 7})
    assert list(cells.values()) == ["x", expected, 7, "5m"]


def conditions(*true):
    return [{"type": each, "status": "True"} for each in true]


@pytest.mark.parametrize(
    ("types", "deleting", "expected"),
    [
        pytest.param((), False, "Running", id="no condition"),
        pytest.param(("SuccessCriteriaMet",), False, "SuccessCriteriaMet", id="succeeds"),
        pytest.param(("SuccessCriteriaMet", "FailureTarget"), False, "FailureTarget", id="fails"),
        pytest.param(("FailureTarget", "Suspended"), False, "Suspended", id="suspended"),
        pytest.param(("Suspended",), True, "Terminating", id="deleted"),
        pytest.param(("Failed", "FailureTarget"), True, "Failed", id="failed, then deleted"),
        pytest.param(("Failed", "Complete"), False, "Complete", id="complete before all"),
    ],
)
def test_job_status_column(types, deleting, expected):
    metadata = {"deletionTimestamp": time_ago(seconds=1)} if deleting else {}
    assert (
        batch("Job", {"metadata": metadata, "status": {"conditions": conditions(*types)}})["Status"]
        == expected
    )


def test_false_job_condition_is_not_shown():
    tree = {"status": {"conditions": [{"type": "Complete", "status": "False"}]}}
    assert batch("Job", tree)["Status"] == "Running"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"completions": 4, "parallelism": 2}, "3/4"),
        ({"completions": 0}, "3/0"),
        ({"parallelism": 2}, "3/1 of 2"),
        ({"parallelism": 1}, "3/1"),
        ({}, "3/1"),
    ],
)
def test_job_completions_column(spec, expected):
    assert batch("Job", {"spec": spec, "status": {"succeeded": 3}})["Completions"] == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, "", id="not started"),
        pytest.param({"startTime": time_ago(seconds=90)}, "90s", id="running"),
        pytest.param(
            {"startTime": time_ago(minutes=90), "completionTime": time_ago(minutes=60)}, "30m", id="complete"
        ),
    ],
)
def test_job_duration_column(status, expected):
    assert batch("Job", {"status": status})["Duration"] == expected


def test_cron_job_columns():
    tree = {
        "spec": {
            "schedule": "*/5 * * * *",
            "timeZone": "Asia/Shanghai",
            "suspend": True,
            "jobTemplate": {"spec": {"template": TEMPLATE}},
        },
        "status": {"active": [{}, {}], "lastScheduleTime": time_ago(seconds=70)},
    }
    assert list(batch("CronJob", tree).values()) == [
        "x", "*/5 * * * *", "Asia/Shanghai", "True", 2, "70s", "5m", "one,two", "i:1,i:2", "<none>",
    ]  # fmt: skip


def test_cron_job_columns_of_empty_object():
    assert list(batch("CronJob", {}).values()) == [
        "x", "", "<none>", "<unset>", 0, "<none>", "5m", "", "", "<none>",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ("N/A", "N/A")),
        ({"minAvailable": 2}, ("2", "N/A")),
        ({"maxUnavailable": "25%"}, ("N/A", "25%")),
        ({"minAvailable": 0}, ("0", "N/A")),
    ],
)
def test_pod_disruption_budget_columns(spec, expected):
    tree = {"spec": spec, "status": {"disruptionsAllowed": 1}}
    assert list(printed_cells("policy", "PodDisruptionBudget", tree).values()) == ["x", *expected, 1, "5m"]


def test_scale_columns():
    cells = printed_cells("autoscaling", "Scale", {"spec": {"replicas": 3}, "status": {"replicas": 2}})
    assert list(cells.values()) == ["x", 3, 2, "5m"]
