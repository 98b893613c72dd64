"""Pod lifecycle: the status of a pod at given times after it was bound to a node."""

import pytest

from tests.support.controllers.pods import IP, SimulatedPod, container, node_context, pod

JOB = {"batch.kubernetes.io/job-name": "j"}


def test_plain_pod_is_ready_with_one_write():
    simulated = SimulatedPod(pod())
    assert simulated.writes == 1
    assert simulated.due is None
    assert simulated.status == {
        "conditions": [
            {
                "lastTransitionTime": "2030-01-01T00:00:00Z",
                "observedGeneration": 1,
                "status": "True",
                "type": name,
            }
            for name in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [
            {
                "image": "nginx:1.25",
                "imageID": "",
                "lastState": {},
                "name": "c",
                "ready": True,
                "resources": {},
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}},
            }
        ],
        "hostIP": "172.18.0.2",
        "hostIPs": [{"ip": "172.18.0.2"}],
        "observedGeneration": 1,
        "phase": "Running",
        "podIP": IP,
        "podIPs": [{"ip": IP}],
        "startTime": "2030-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("subject", "seconds", "phase", "states"),
    [
        pytest.param(pod(), 9999, "Running", {"c": "running"}, id="a service runs on"),
        pytest.param(pod(container("c", "sleep", "30")), 29, "Running", {"c": "running"}, id="during sleep"),
        pytest.param(
            pod(container("c", "sleep", "30"), policy="Never"), 30, "Succeeded", {"c": 0}, id="after sleep"
        ),
        pytest.param(
            pod(container("c", "false"), policy="Never"), 0, "Failed", {"c": 1}, id="immediate failure"
        ),
        pytest.param(
            pod(container("c", "sh", "-c", "sleep 2; exit 3"), policy="Never"),
            2,
            "Failed",
            {"c": 3},
            id="failure with exit code",
        ),
        pytest.param(
            pod(container("c", "sleep", "5"), container("d", "false"), policy="Never"),
            4,
            "Running",
            {"c": "running", "d": 1},
            id="one failed, one runs",
        ),
        pytest.param(
            pod(container("c", "sleep", "5"), container("d", "false"), policy="Never"),
            5,
            "Failed",
            {"c": 0, "d": 1},
            id="one failed, one succeeded",
        ),
        pytest.param(
            pod(container("c", "make", image="app"), policy="Never"),
            0,
            "Succeeded",
            {"c": 0},
            id="a task completes",
        ),
        pytest.param(
            pod(container("c", image="app"), policy="Never", labels=JOB),
            0,
            "Succeeded",
            {"c": 0},
            id="a Job's pod completes",
        ),
        pytest.param(
            pod(container("c"), policy="Never"),
            60,
            "Running",
            {"c": "running"},
            id="a server that may end runs on",
        ),
        pytest.param(
            pod(container("c", "sleep", "infinity"), policy="OnFailure", labels=JOB),
            9999,
            "Running",
            {"c": "running"},
            id="sleeping pod of a Job",
        ),
        pytest.param(
            pod(container("c", "true")),
            1,
            "Running",
            {"c": "CrashLoopBackOff"},
            id="completion with restartPolicy Always",
        ),
        pytest.param(
            pod(container("c"), activeDeadlineSeconds=10),
            10,
            "Failed",
            {"c": 0},
            id="active deadline exceeded",
        ),
    ],
)
def test_pod_phases(subject, seconds, phase, states):
    simulated = SimulatedPod(subject).pass_time(seconds)
    assert (simulated.phase, simulated.containers()) == (phase, states)


@pytest.mark.parametrize(
    "volume",
    [
        {"emptyDir": {}},
        {"hostPath": {"path": "/x"}},
        {"configMap": {"name": "m"}},
        {"persistentVolumeClaim": {"claimName": "c"}},
    ],
    ids=lambda volume: next(iter(volume)),
)
def test_volume_may_be_mounted_over_the_folder_of_the_image(volume):
    mount = {"name": "v", "mountPath": "/data"}
    subject = pod(
        container("c", "sh", "-c", "sleep 5", image="redis", volumeMounts=[mount]),
        volumes=[{"name": "v", **volume}],
    )
    context = node_context(details=True, config_maps={"m": {"data": {}}})
    assert SimulatedPod(subject, context=context).containers() == {"c": "running"}


def test_exceeded_deadline_has_reason():
    simulated = SimulatedPod(pod(activeDeadlineSeconds=10)).pass_time(10)
    assert simulated.status["reason"] == "DeadlineExceeded"
    assert simulated.status["message"] == "Pod was active on the node longer than the specified deadline"


def test_restarts_back_off_exponentially():
    simulated = SimulatedPod(pod(container("c", "false")))
    restarts = [simulated.status["containerStatuses"][0]["restartCount"]]
    for seconds in (9, 1, 19, 1, 39, 1, 80, 160, 299, 1, 300):
        simulated.pass_time(seconds)
        restarts.append(simulated.status["containerStatuses"][0]["restartCount"])
    assert restarts == [1, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 8]
    status = simulated.status["containerStatuses"][0]
    assert status["state"]["waiting"] == {
        "message": "back-off 5m0s restarting failed container=c pod=p_ns(uid-1)",
        "reason": "CrashLoopBackOff",
    }
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert not simulated.ready


def test_long_run_resets_backoff():
    simulated = SimulatedPod(pod(container("c", "sleep", "900")))
    simulated.pass_time(4 * 900)
    assert simulated.containers() == {"c": "running"}
    assert simulated.status["containerStatuses"][0]["restartCount"] == 4


def test_on_failure_policy_restarts_failures_only():
    script = {"mockube.dev/crash-times": "2", "mockube.dev/fail-with-code": "7"}
    simulated = SimulatedPod(pod(container("c", "true"), policy="OnFailure", annotations=script))
    assert simulated.containers() == {"c": "CrashLoopBackOff"}
    assert simulated.status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 7
    simulated.pass_time(10)
    assert (simulated.phase, simulated.containers()) == ("Succeeded", {"c": 0})
    assert simulated.status["containerStatuses"][0]["restartCount"] == 2


def test_init_containers_run_in_order():
    init = [container("one", "sleep", "5"), container("two", "sleep", "3")]
    simulated = SimulatedPod(pod(init=init))
    assert simulated.containers("initContainerStatuses") == {"one": "running", "two": "PodInitializing"}
    assert simulated.containers() == {"c": "PodInitializing"}
    assert simulated.condition("Initialized")["message"] == "containers with incomplete status: [one two]"
    simulated.pass_time(5)
    assert simulated.containers("initContainerStatuses") == {"one": 0, "two": "running"}
    assert simulated.condition("Initialized")["message"] == "containers with incomplete status: [two]"
    assert simulated.phase == "Pending"
    simulated.pass_time(3)
    assert simulated.containers("initContainerStatuses") == {"one": 0, "two": 0}
    assert (simulated.phase, simulated.containers(), simulated.ready) == ("Running", {"c": "running"}, True)


@pytest.mark.parametrize(
    ("policy", "phase", "states"),
    [
        ("Never", "Failed", {"one": 1}),
        ("OnFailure", "Pending", {"one": "CrashLoopBackOff"}),
        ("Always", "Pending", {"one": "CrashLoopBackOff"}),
    ],
)
def test_failing_init_containers(policy, phase, states):
    simulated = SimulatedPod(pod(init=[container("one", "false")], policy=policy)).pass_time(1)
    assert (simulated.phase, simulated.containers("initContainerStatuses")) == (phase, states)
    assert simulated.containers() == {"c": "PodInitializing"}


def test_sidecars_run_with_containers_and_end_last():
    sidecar = container("side", restartPolicy="Always")
    simulated = SimulatedPod(
        pod(container("c", "sleep", "9"), init=[sidecar, container("i", "sleep", "1")], policy="Never")
    )
    assert simulated.containers("initContainerStatuses") == {"side": "running", "i": "running"}
    simulated.pass_time(1)
    assert simulated.containers() == {"c": "running"}
    assert simulated.ready
    simulated.pass_time(9)
    assert simulated.phase == "Succeeded"
    assert simulated.containers("initContainerStatuses") == {"side": 0, "i": 0}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"command": ["false"]}, id="it ends at once"),
        pytest.param({"command": ["/nope"]}, id="it cannot be started"),
        pytest.param(
            {"startupProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1}},
            id="its startup probe fails",
        ),
        pytest.param({"lifecycle": {"postStart": {"exec": {"command": ["false"]}}}}, id="its hook fails"),
    ],
)
def test_containers_wait_for_sidecar_that_runs_and_has_started(fields):
    sidecar = container("side", "sleep", "5000", restartPolicy="Always") | {"image": "busybox:1.36"} | fields
    subject = SimulatedPod(pod(container("c"), init=[sidecar]), context=node_context(details=True)).pass_time(
        600
    )
    assert subject.pod["status"]["phase"] == "Pending"
    assert "waiting" in subject.status["containerStatuses"][0]["state"]


def test_containers_run_on_while_sidecar_is_restarted():
    sidecar = container("side", "sleep", "5", restartPolicy="Always")
    subject = SimulatedPod(pod(container("c"), init=[sidecar]), context=node_context(details=True)).pass_time(
        300
    )
    assert subject.pod["status"]["phase"] == "Running"
    assert subject.status["containerStatuses"][0]["state"]["running"]


def test_unready_sidecar_keeps_pod_unready():
    sidecar = container("side", "sleep", "5", restartPolicy="Always")
    simulated = SimulatedPod(pod(init=[sidecar])).pass_time(12)  # it backs off after its first restart
    assert simulated.containers() == {"c": "running"}
    assert simulated.condition("Ready")["message"] == "containers with unready status: [side]"


def test_conditions_of_completed_pod():
    simulated = SimulatedPod(pod(container("c", "true"), policy="Never"))
    assert simulated.conditions() == {
        "PodScheduled": "True",
        "Initialized": "PodCompleted",
        "Ready": "PodCompleted",
        "ContainersReady": "PodCompleted",
    }
    assert simulated.condition("Initialized")["status"] == "True"
    assert simulated.condition("Ready")["status"] == "False"


def test_readiness_gates_wait_for_their_conditions():
    simulated = SimulatedPod(pod(readinessGates=[{"conditionType": "a.b/c"}]))
    assert simulated.conditions()["ContainersReady"] == "True"
    assert simulated.condition("Ready")["reason"] == "ReadinessGatesNotReady"
    assert simulated.condition("Ready")["message"] == (
        'corresponding condition of pod readiness gate "a.b/c" does not exist.'
    )
    simulated.status["conditions"].append({"type": "a.b/c", "status": "False"})
    simulated.step_until_idle()
    assert simulated.condition("Ready")["message"] == (
        'the status of pod readiness gate "a.b/c" is not "True", but False'
    )
    simulated.condition("a.b/c")["status"] = "True"
    simulated.step_until_idle()
    assert simulated.ready
    assert "message" not in simulated.condition("Ready")


def test_host_network_pod_has_address_of_node():
    assert SimulatedPod(pod(hostNetwork=True)).status["podIP"] == "172.18.0.2"


def test_statically_bound_pod_is_scheduled():
    subject = pod()
    subject["status"] = {}
    assert SimulatedPod(subject).conditions()["PodScheduled"] == "True"


def test_ephemeral_containers_run_once():
    simulated = SimulatedPod(pod()).change(ephemeralContainers=[container("debug", "sleep", "60")])
    assert simulated.containers("ephemeralContainerStatuses") == {"debug": "running"}
    simulated.pass_time(60)
    assert simulated.containers("ephemeralContainerStatuses") == {"debug": 0}
    assert (simulated.phase, simulated.ready) == ("Running", True)


# --- the end


def test_deleted_pod_is_removed_at_once_without_status_write():
    simulated = SimulatedPod(pod()).delete()
    assert simulated.removed
    assert simulated.writes == 1


def test_deleted_pod_has_exit_codes_with_details():
    simulated = SimulatedPod(
        pod(container("c", "sleep", "infinity")), context=node_context(details=True)
    ).delete()
    assert not simulated.pass_time(29).removed
    assert simulated.pass_time(1).removed
    assert (simulated.phase, simulated.containers()) == ("Failed", {"c": 137})
    assert [item.message for item in simulated.events if item.reason == "Killing"] == ["Stopping container c"]


def test_deleted_pod_with_finalizer_gets_last_status():
    subject = pod()
    subject["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    simulated = SimulatedPod(subject).delete()
    assert (simulated.phase, simulated.removed) == ("Succeeded", True)


def test_pod_without_grace_waits_for_finalizers_after_its_last_status():
    subject = pod()
    subject["metadata"]["finalizers"] = ["example.com/wait"]
    simulated = SimulatedPod(subject).delete(grace=0)
    assert (simulated.phase, simulated.status["observedGeneration"]) == ("Succeeded", 2)
    simulated.removed = False
    assert not simulated.pass_time(60).removed


@pytest.mark.parametrize(
    ("subject", "details"),
    [
        pytest.param(pod(container("c", "sleep", "infinity")), True, id="ignores SIGTERM"),
        pytest.param(pod(annotations={"mockube.dev/terminate-after": "20s"}), False, id="annotated"),
        pytest.param(pod(annotations={"mockube.dev/hang-terminating": "true"}), False, id="hangs"),
        pytest.param(
            pod(container(lifecycle={"preStop": {"sleep": {"seconds": 20}}})), True, id="preStop hook"
        ),
        pytest.param(
            pod(
                container(),
                init=[container("i", "sleep", "1d", image="busybox")],
                readinessGates=[{"conditionType": "example.com/gate"}],
            ),
            True,
            id="init container",
        ),
    ],
)
def test_terminating_pod_reports_new_generation_at_once_with_same_conditions(subject, details):
    simulated = SimulatedPod(subject, context=node_context(details=details)).pass_time(5)
    before = simulated.conditions()
    writes = simulated.writes
    simulated.delete()
    assert (simulated.removed, simulated.writes) == (False, writes + 1)
    assert simulated.status["observedGeneration"] == 2
    assert {condition["observedGeneration"] for condition in simulated.status["conditions"]} == {2}
    assert simulated.conditions() == before
    simulated.change(tolerations=[{"operator": "Exists"}])
    assert {condition["observedGeneration"] for condition in simulated.status["conditions"]} == {3}
    assert simulated.pass_time(5).writes == writes + 2


def test_terminating_pod_keeps_generation_of_conditions_of_others():
    simulated = SimulatedPod(pod(container("c", "sleep", "infinity")), context=node_context(details=True))
    other = {"type": "DisruptionTarget", "status": "True", "observedGeneration": 1}
    simulated.status["conditions"].append(other)
    assert simulated.delete().condition("DisruptionTarget") == other


def test_terminating_pod_takes_annotated_time():
    simulated = SimulatedPod(pod(annotations={"mockube.dev/terminate-after": "20s"})).delete(grace=30)
    assert not simulated.pass_time(19).removed
    assert simulated.pass_time(1).removed


def test_termination_is_limited_to_grace_period():
    simulated = SimulatedPod(pod(annotations={"mockube.dev/terminate-after": "20s"})).delete(grace=5)
    assert not simulated.pass_time(4).removed
    assert simulated.pass_time(1).removed


def test_hanging_pod_is_removed_after_annotation_is_removed():
    simulated = SimulatedPod(pod(annotations={"mockube.dev/hang-terminating": "true"})).delete()
    assert not simulated.pass_time(9999).removed
    assert simulated.annotate().removed


def test_finished_pod_is_removed_unchanged():
    simulated = SimulatedPod(pod(container("c", "true"), policy="Never")).delete()
    assert (simulated.removed, simulated.writes) == (True, 1)


# --- annotations


@pytest.mark.parametrize(
    ("annotation", "before", "after"),
    [
        pytest.param({"start-after": "5s"}, "ContainerCreating", "running", id="starts late"),
        pytest.param({"exit-after": "5s"}, "running", 0, id="ends early"),
        pytest.param({"exit-after": "5s", "fail-with-code": "9"}, "running", 9, id="fails with a code"),
    ],
)
def test_annotation_scripts(annotation, before, after):
    script = {f"mockube.dev/{name}": text for name, text in annotation.items()}
    simulated = SimulatedPod(pod(annotations=script, policy="Never"))
    assert simulated.pass_time(4).containers() == {"c": before}
    assert simulated.pass_time(1).containers() == {"c": after}


def test_ready_after_annotation_delays_readiness():
    simulated = SimulatedPod(pod(annotations={"mockube.dev/ready-after": "1m"}))
    assert simulated.condition("Ready")["message"] == "containers with unready status: [c]"
    assert not simulated.pass_time(59).ready
    assert simulated.pass_time(1).ready
    assert simulated.writes == 2


def test_pod_annotated_never_ready():
    assert not SimulatedPod(pod(annotations={"mockube.dev/ready-after": "never"})).pass_time(9999).ready


def test_waiting_reason_annotation_holds_container():
    reason = {"mockube.dev/waiting-reason": "ImagePullBackOff"}
    simulated = SimulatedPod(pod(annotations=reason)).pass_time(60)
    assert (simulated.phase, simulated.containers()) == ("Pending", {"c": "ImagePullBackOff"})
    assert simulated.annotate().containers() == {"c": "running"}


def test_invalid_annotations_are_named_in_events():
    script = {"mockube.dev/ready-after": "soon", "mockube.dev/dance": "1", "mockube.dev/crash-times": "-1"}
    simulated = SimulatedPod(pod(annotations=script))
    assert simulated.ready
    assert [item.message for item in simulated.events] == [
        "mockube.dev/crash-times: '-1': must be a whole number",
        "mockube.dev/dance: '1': unknown annotation",
        """mockube.dev/ready-after: 'soon': time: invalid duration "soon\"""",
    ]
    simulated.pass_time(60)
    assert len(simulated.events) == 3


# --- fields that only a kubelet sets


def test_start_events_are_kubelets():
    simulated = SimulatedPod(pod(), context=node_context(details=True))
    assert [(item.type, item.reason, item.message) for item in simulated.events] == [
        (
            "Normal",
            "Pulled",
            'Container image "nginx:1.25" already present on machine and can be accessed by the pod',
        ),
        ("Normal", "Created", "Container created"),
        ("Normal", "Started", "Container started"),
    ]
    assert simulated.conditions()["PodReadyToStartContainers"] == "True"
    status = simulated.status["containerStatuses"][0]
    assert status["containerID"].startswith("mockube://")
    assert status["imageID"].startswith("docker.io/library/nginx@sha256:")


def test_ids_are_deterministic():
    context = node_context(details=True)
    one, two = (
        SimulatedPod(pod(container("c", "false")), context=context).status["containerStatuses"][0]
        for _ in "ab"
    )
    assert one == two
    end = one["lastState"]["terminated"]
    assert end["containerID"] == one["containerID"]
    simulated = SimulatedPod(pod(container(image="localhost:5000/app")), context=context)
    image = simulated.status["containerStatuses"][0]
    assert image["imageID"].startswith("localhost:5000/app@sha256:")


def test_crash_events_are_kubelets():
    simulated = SimulatedPod(pod(container("c", "false")), context=node_context(details=True))
    assert simulated.events[-1].type == "Warning"
    assert simulated.events[-1].reason == "BackOff"
    assert simulated.events[-1].message == "Back-off restarting failed container c in pod p_ns(uid-1)"


def deadline_pod(*argv, **fields):
    return SimulatedPod(
        pod(container("c", *argv, **fields), activeDeadlineSeconds=60, terminationGracePeriodSeconds=5),
        context=node_context(details=True),
    )


@pytest.mark.parametrize(
    ("argv", "image", "seconds", "code"),
    [
        ((), "nginx", 0, 0),
        (("sleep", "5000"), "busybox", 5, 137),
        (("sh", "-c", "trap 'exit 3' TERM; sleep 999 & wait"), "busybox", 0, 3),
    ],
)
def test_containers_have_their_grace_period_after_deadline(argv, image, seconds, code):
    simulated = deadline_pod(*argv, image=image).pass_time(60 + seconds - 1)
    assert simulated.status["phase"] == "Running"
    simulated.pass_time(1)
    assert (simulated.status["phase"], simulated.status["reason"]) == ("Failed", "DeadlineExceeded")
    assert simulated.status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code
    assert [event.reason for event in simulated.events].count("DeadlineExceeded") == 1


def test_container_of_deleted_pod_that_backs_off_ends_as_it_did():
    crashing = container("c", "sh", "-c", "exit 3", image="busybox")
    simulated = SimulatedPod(pod(crashing), context=node_context(details=True)).pass_time(5)
    simulated.delete()
    assert simulated.status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
