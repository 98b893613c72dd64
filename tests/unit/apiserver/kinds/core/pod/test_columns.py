"""The STATUS and RESTARTS columns of pods, by the statuses of their containers."""

import pytest

from tests.support.server.printed_columns import printed_cells, time_ago

READY = {"type": "Ready", "status": "True"}
INITIALIZED = {"type": "Initialized", "status": "True"}


def container(state, *, name="main", restarts=0, **fields):
    return {"name": name, "restartCount": restarts, "state": state, **fields}


def running_container(**fields):
    return container({"running": {"startedAt": time_ago(minutes=1)}}, ready=True, started=True, **fields)


def waiting(reason="", **fields):
    return container({"waiting": {"reason": reason} if reason else {}}, **fields)


def terminated(code=0, reason="", signal=0, **fields):
    state = {"exitCode": code, "reason": reason, "signal": signal}
    return container(
        {"terminated": {field: value for field, value in state.items() if value or field == "exitCode"}},
        **fields,
    )


def last_terminated(**span):
    return {"lastState": {"terminated": {"exitCode": 1, "finishedAt": time_ago(**span)}}}


def pod(*main, init=(), sidecars=(), phase="Running", conditions=(), deleting=False, **status):
    """Return a pod with these container statuses; init containers in `sidecars` have restartPolicy Always."""
    started = {"containerStatuses": main, "initContainerStatuses": init}
    return {
        "metadata": {"deletionTimestamp": time_ago(seconds=1)} if deleting else {},
        "spec": {
            "containers": [{"name": each["name"]} for each in main] or [{"name": "main"}],
            "initContainers": [
                {"name": each["name"]} | ({"restartPolicy": "Always"} if each["name"] in sidecars else {})
                for each in init
            ],
        },
        "status": {"phase": phase, "conditions": conditions, **started, **status},
    }


def pod_columns(tree):
    cells = printed_cells("", "Pod", tree)
    return cells["Ready"], cells["Status"], cells["Restarts"]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(pod(phase="Pending"), ("0/1", "Pending", "0"), id="without container statuses"),
        pytest.param(
            pod(
                phase="Pending",
                conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            ),
            ("0/1", "SchedulingGated", "0"),
            id="scheduling gated",
        ),
        pytest.param(
            pod(waiting("ContainerCreating"), phase="Pending"),
            ("0/1", "ContainerCreating", "0"),
            id="creating",
        ),
        pytest.param(pod(running_container(), conditions=[READY]), ("1/1", "Running", "0"), id="runs"),
        pytest.param(
            pod(container({"running": {}}, ready=False)), ("0/1", "Running", "0"), id="runs but is not ready"
        ),
        pytest.param(pod(waiting()), ("0/1", "Running", "0"), id="waits without a reason"),
        pytest.param(
            pod(
                running_container(name="a"),
                waiting("ImagePullBackOff", name="b"),
                waiting("ErrImagePull", name="c"),
            ),
            ("1/3", "ImagePullBackOff", "0"),
            id="reason of the first waiting container",
        ),
        pytest.param(pod(phase="Failed", reason="Evicted"), ("0/1", "Evicted", "0"), id="evicted"),
    ],
)
def test_pod_status_column_follows_containers(tree, expected):
    assert pod_columns(tree) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(
            pod(terminated(reason="Completed"), phase="Succeeded"), ("0/1", "Completed", "0"), id="completed"
        ),
        pytest.param(pod(terminated(1, "Error"), phase="Failed"), ("0/1", "Error", "0"), id="failed"),
        pytest.param(
            pod(terminated(137, signal=9), phase="Failed"), ("0/1", "Signal:9", "0"), id="killed by a signal"
        ),
        pytest.param(
            pod(terminated(3), phase="Failed"), ("0/1", "ExitCode:3", "0"), id="exit code without reason"
        ),
        pytest.param(
            pod(terminated(reason="Completed", name="a"), running_container(name="b"), conditions=[READY]),
            ("1/2", "Running", "0"),
            id="one completed and the pod is ready",
        ),
        pytest.param(
            pod(terminated(reason="Completed", name="a"), running_container(name="b")),
            ("1/2", "NotReady", "0"),
            id="one completed and the pod is not ready",
        ),
        pytest.param(
            pod(terminated(reason="Completed", name="a"), terminated(2, "Error", name="b"), phase="Failed"),
            ("0/2", "Error", "0"),
            id="one completed and another failed",
        ),
        pytest.param(
            pod(
                terminated(reason="Completed", name="a"),
                terminated(2, "OOMKilled", name="b"),
                running_container(name="c"),
                conditions=[READY],
            ),
            ("1/3", "Running", "0"),
            id="a ready pod is Running despite a failed container",
        ),
    ],
)
def test_pod_status_column_of_terminated_containers(tree, expected):
    assert pod_columns(tree) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(
            pod(waiting("PodInitializing"), init=[running_container(name="i")], phase="Pending"),
            ("0/1", "Init:0/1", "0"),
            id="first of one",
        ),
        pytest.param(
            pod(
                waiting("PodInitializing"),
                init=[terminated(reason="Completed", name="i"), waiting("PodInitializing", name="j")],
                phase="Pending",
            ),
            ("0/1", "Init:1/2", "0"),
            id="second of two",
        ),
        pytest.param(
            pod(waiting("PodInitializing"), init=[waiting("CrashLoopBackOff", name="i", restarts=4)]),
            ("0/1", "Init:CrashLoopBackOff", "4"),
            id="CrashLoopBackOff",
        ),
        pytest.param(
            pod(waiting("PodInitializing"), init=[terminated(1, "Error", name="i")]),
            ("0/1", "Init:Error", "0"),
            id="failed",
        ),
        pytest.param(
            pod(waiting("PodInitializing"), init=[terminated(1, name="i")]),
            ("0/1", "Init:ExitCode:1", "0"),
            id="failed with a code",
        ),
        pytest.param(
            pod(waiting("PodInitializing"), init=[terminated(137, signal=9, name="i")]),
            ("0/1", "Init:Signal:9", "0"),
            id="killed by a signal",
        ),
        pytest.param(
            pod(waiting("PodInitializing"), init=[terminated(reason="Completed", name="i", restarts=2)]),
            ("0/1", "PodInitializing", "0"),
            id="restarts of finished init containers are not counted",
        ),
    ],
)
def test_pod_status_column_of_init_containers(tree, expected):
    assert pod_columns(tree) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(
            pod(
                running_container(restarts=1),
                init=[running_container(name="proxy", restarts=2)],
                sidecars={"proxy"},
            ),
            ("2/2", "Running", "3"),
            id="counted with the containers",
        ),
        pytest.param(
            pod(
                waiting("PodInitializing"),
                init=[running_container(name="proxy"), waiting("PodInitializing", name="i")],
                sidecars={"proxy"},
            ),
            ("1/2", "Init:1/2", "0"),
            id="ready before the pod is initialized",
        ),
        pytest.param(
            pod(
                waiting("PodInitializing"),
                init=[container({"running": {}}, name="proxy")],
                sidecars={"proxy"},
            ),
            ("0/2", "Init:0/1", "0"),
            id="sidecar that has not started",
        ),
        pytest.param(
            pod(
                running_container(),
                init=[waiting("CrashLoopBackOff", name="proxy", restarts=3)],
                sidecars={"proxy"},
                conditions=[INITIALIZED, READY],
            ),
            ("1/2", "Init:CrashLoopBackOff", "3"),
            id="crashes after the pod was initialized",
        ),
    ],
)
def test_pod_status_column_of_sidecars(tree, expected):
    assert pod_columns(tree) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(pod(running_container(restarts=2)), "2", id="without time of last restart"),
        pytest.param(
            pod(running_container(restarts=2, **last_terminated(minutes=5))), "2 (5m ago)", id="once"
        ),
        pytest.param(
            pod(
                running_container(name="a", restarts=1, **last_terminated(hours=9)),
                running_container(name="b", restarts=1, **last_terminated(minutes=30)),
            ),
            "2 (30m ago)",
            id="latest termination counts",
        ),
        pytest.param(
            pod(running_container(**last_terminated(minutes=5))), "0", id="terminated but never restarted"
        ),
        pytest.param(
            pod(
                running_container(restarts=1),
                init=[terminated(name="i", restarts=3, **last_terminated(minutes=5))],
            ),
            "1",
            id="without restarts of init containers",
        ),
        pytest.param(
            pod(
                running_container(restarts=1, **last_terminated(hours=9)),
                init=[running_container(name="proxy", restarts=1, **last_terminated(minutes=5))],
                sidecars={"proxy"},
            ),
            "2 (5m ago)",
            id="with restarts of sidecars",
        ),
    ],
)
def test_restarts_column_has_time_of_last(tree, expected):
    assert pod_columns(tree)[2] == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(pod(running_container(), deleting=True), "Terminating", id="running"),
        pytest.param(pod(waiting("CrashLoopBackOff"), deleting=True), "Terminating", id="crashing"),
        pytest.param(
            pod(terminated(reason="Completed"), phase="Succeeded", deleting=True), "Completed", id="completed"
        ),
        pytest.param(
            pod(running_container(), deleting=True, reason="NodeLost"), "Unknown", id="node is lost"
        ),
    ],
)
def test_deleted_pod_is_terminating(tree, expected):
    assert pod_columns(tree)[1] == expected
