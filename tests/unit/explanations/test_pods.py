"""Explanations of pods that have a node."""

import pytest

from mockube.apimachinery.groups import PODS
from mockube.explanations.catalog import explain
from mockube.explanations.explanation import MAX_TEXT, Explanation, status_of
from mockube.explanations.facts import (
    DependentsOf,
    EventsOf,
    Facts,
    Member,
    NotCollected,
    ObjectsOf,
    WatchersOf,
)
from tests.support.explained import (
    NOW,
    condition,
    event,
    facts_of,
    node_of,
    pod_of,
    thing,
    with_state,
)

READY = {
    "phase": "Running",
    "containerStatuses": [{"name": "c", "ready": True, "restartCount": 0, "state": {"running": {}}}],
    "conditions": [condition("Initialized", "True"), condition("Ready", "True")],
}


def explained(pod, *objects, **more):
    return explain(PODS, pod, facts_of(pod, node_of(), *objects, **more))


def waiting(reason, message=""):
    return with_state({"waiting": {"reason": reason, "message": message}})


def commands(found):
    return [remedy.command for remedy in found.remedies if remedy.command]


def test_ready_pod_has_no_problem():
    found = explained(pod_of(status=READY))
    assert (found.state, found.cause) == ("NoProblem", "the pod is ready")


@pytest.mark.parametrize(
    ("reason", "message", "cause", "state"),
    [
        ("ErrImagePull", "docker.io/x: not found", "does not exist in its registry", "Explained"),
        (
            "ImagePullBackOff",
            "pull access denied, unauthorized",
            "its registry refuses access, as many do also if the image does not exist",
            "Explained",
        ),
        ("ErrImagePull", "repository does not exist or may require auth", "does not tell which", "Explained"),
        (
            "ErrImagePull",
            "no match for platform in manifest: not found",
            "no variant for the platform",
            "Explained",
        ),
        ("ErrImagePull", "x509: certificate signed by unknown authority", "is not trusted", "Explained"),
        ("ErrImagePull", "dial tcp: lookup r: no such host", "its registry cannot be reached", "Explained"),
        ("InvalidImageName", "", "has an invalid name", "Explained"),
        ("ErrImageNeverPull", "", "imagePullPolicy Never forbids to pull it", "Explained"),
        ("ErrImagePull", "something else", "mockube does not know why beyond the message", "Unknown"),
    ],
)
def test_image_that_cannot_be_pulled(reason, message, cause, state):
    found = explained(pod_of(status=waiting(reason, message)))
    assert found.cause.startswith("the image nginx of the container c ")
    assert cause in found.cause
    assert found.state == state


def test_back_off_of_image_is_explained_by_event():
    pod = pod_of(status=waiting("ImagePullBackOff", 'Back-off pulling image "nginx"'))
    found = explained(pod, event(pod, "Failed", 'Failed to pull image "nginx": nginx: not found'))
    assert "does not exist in its registry" in found.cause


def test_missing_pull_secret():
    pod = pod_of(status=waiting("ErrImagePull", "unauthorized"), imagePullSecrets=[{"name": "key"}])
    found = explained(pod)
    assert "the Secret key in spec.imagePullSecrets, which does not exist" in found.remedies[0].text
    unread = explained(pod, refused=("secrets",))
    assert "does not exist" not in unread.remedies[0].text


def test_configuration_that_does_not_exist():
    container = {"envFrom": [{"configMapRef": {"name": "settings"}}]}
    pod = pod_of(
        status=waiting("CreateContainerConfigError", 'configmap "settings" not found'), container=container
    )
    found = explained(pod)
    assert found.cause == "the container c needs the ConfigMap settings, which does not exist"
    assert commands(found) == ["kubectl -n default create configmap settings"]
    unread = explained(pod, refused=("configmaps",))
    assert unread.cause == 'the container c cannot be created: configmap "settings" not found'


def test_key_that_a_secret_lacks():
    reference = {"name": "login", "key": "password"}
    container = {"env": [{"name": "P", "valueFrom": {"secretKeyRef": reference}}]}
    pod = pod_of(status=waiting("CreateContainerConfigError"), container=container)
    found = explained(pod, thing("Secret", "login", data={"user": "eA=="}))
    assert (
        found.cause
        == "the container c, variable P, needs the key password of the Secret login, which has no such key"
    )


def test_volumes_that_cannot_be_mounted():
    volumes = [
        {"name": "v", "configMap": {"name": "nope"}},
        {"name": "o", "configMap": {"name": "nope", "optional": True}},
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    pod = pod_of(status=waiting("ContainerCreating"), volumes=volumes)
    claim = thing("PersistentVolumeClaim", "data", status={"phase": "Pending"})
    found = explained(pod, claim, event(pod, "FailedMount", "MountVolume.SetUp failed"))
    assert found.cause == "the volume v needs the ConfigMap nope, which does not exist"
    texts = [each.text for each in found.evidence]
    assert "the PersistentVolumeClaim data is not bound: its phase is Pending" in texts
    assert "MountVolume.SetUp failed" in texts
    assert "mockube why persistentvolumeclaim/data -n default" in commands(found)


def test_pod_without_containers_yet_waits_for_its_volumes():
    pod = pod_of(status={"phase": "Pending"}, volumes=[{"name": "v", "configMap": {"name": "nope"}}])
    found = explained(pod, event(pod, "FailedMount", "MountVolume.SetUp failed"))
    assert found.cause == "the volume v needs the ConfigMap nope, which does not exist"
    assert [each.text for each in found.evidence] == ["MountVolume.SetUp failed"]
    found = explained(pod_of(status={"phase": "Pending"}))
    assert (found.state, "has not reported the pod's containers" in found.cause) == ("Unknown", True)


def test_container_that_is_being_created_is_not_explained():
    assert explained(pod_of(status=waiting("ContainerCreating"))).state == "Unknown"


def crashed(policy="Always", **end):
    status = with_state(
        {"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": end}, restartCount=2
    )
    return pod_of(
        status=status, restartPolicy=policy, container={"resources": {"limits": {"memory": "20Mi"}}}
    )


def test_exit_code_with_last_lines():
    found = explained(crashed(exitCode=3, reason="Error"), logs={"c": "one\nbroken"})
    assert (
        found.cause
        == "the container c ended with exit code 3: its own program failed, and has been restarted 2 times; it printed: broken"
    )
    assert [each.text for each in found.evidence if each.source == "log of c"] == ["one", "broken"]
    assert commands(found) == ["kubectl -n default logs web -c c --previous"]


def test_out_of_memory():
    found = explained(crashed(exitCode=137, reason="OOMKilled"))
    assert "used more memory than its limit of 20Mi (OOMKilled)" in found.cause


def test_signal_whose_sender_is_not_recorded():
    found = explained(crashed(exitCode=137, reason="Error"))
    assert "SIGKILL; who sent the signal is not recorded" in found.cause
    assert found.state == "Unknown"


def test_killed_by_liveness_probe():
    pod = crashed(exitCode=0, reason="Completed", startedAt="2026-01-31T11:58:00Z")
    killing = event(pod, "Killing", "Container c failed liveness probe, will be restarted")
    found = explained(pod, killing, event(pod, "Unhealthy", "Liveness probe failed: refused", container="c"))
    assert "is killed because its liveness probe fails: Liveness probe failed: refused" in found.cause


@pytest.mark.parametrize(
    ("code", "started", "finished", "is_killed"),
    [
        (0, "2026-01-31T11:58:50Z", "2026-01-31T11:59:20Z", True),
        (137, "2026-01-31T11:58:50Z", "2026-01-31T11:59:31Z", True),
        (143, "2026-01-31T11:58:50Z", "2026-01-31T11:59:00Z", True),
        (0, "2026-01-31T11:58:50Z", "2026-01-31T11:59:32Z", False),
        (1, "2026-01-31T11:58:50Z", "2026-01-31T11:59:20Z", False),
        (0, "2026-01-31T11:59:10Z", "2026-01-31T11:59:20Z", False),
    ],
)
def test_probe_that_failed_just_before_has_killed_a_container_without_an_event(
    code, started, finished, is_killed
):
    pod = crashed(exitCode=code, reason="Error", startedAt=started, finishedAt=finished)
    failed = event(pod, "Unhealthy", "Liveness probe failed: refused", container="c")
    assert ("its liveness probe fails: Liveness probe failed: refused" in explained(pod, failed).cause) is (
        is_killed
    )


def test_earlier_kill_by_probe_is_not_the_cause():
    pod = crashed(exitCode=3, reason="Error", startedAt="2026-01-31T11:59:30Z")
    killing = event(pod, "Killing", "Container c failed liveness probe, will be restarted")
    assert "ended with exit code 3" in explained(pod, killing).cause


def test_program_that_ends_is_started_again():
    assert "restartPolicy Always starts it again" in explained(crashed(exitCode=0, reason="Completed")).cause


def test_readiness_probe_that_fails():
    probe = {"readinessProbe": {"httpGet": {"path": "/ok", "port": 81}}}
    pod = pod_of(status=with_state({"running": {}}), container=probe)
    failed = ("Unhealthy", "Readiness probe failed: refused")
    found = explained(pod, event(pod, *failed, container="c"))
    assert found.cause == "the readiness probe of the container c (GET /ok at port 81) fails"
    assert explained(pod).state == "Unknown"
    assert explained(pod, event(pod, *failed, container="other")).state == "Unknown"
    started = with_state({"running": {"startedAt": "2026-01-31T11:59:30Z"}})
    assert (
        explained(pod_of(status=started, container=probe), event(pod, *failed, container="c")).state
        == "Unknown"
    )


def test_end_is_not_known_if_a_probe_may_have_caused_it():
    pod = crashed(exitCode=3, reason="Error", finishedAt="2026-01-31T11:59:30Z")
    pod["spec"]["containers"][0]["livenessProbe"] = {"exec": {"command": ["true"]}}
    assert explained(pod).state == "Explained"
    unread = explained(pod, refused=("events",))
    assert (unread.state, "without the right to list Events" in unread.cause) == ("Unknown", True)
    pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["finishedAt"] = "2026-01-31T09:00:00Z"
    expired = explained(pod)
    assert (expired.state, "Events of that time have expired" in expired.cause) == ("Unknown", True)


def test_end_that_the_container_runtime_did_not_report():
    found = explained(crashed(exitCode=255, reason="Unknown"))
    assert (found.state, "its node or container runtime lost it" in found.cause) == ("Unknown", True)


def test_container_that_was_never_started():
    pod = pod_of(status=waiting("RunContainerError", "no such device"))
    assert explained(pod).cause == "the container c cannot be started: no such device"


def test_container_with_a_restart_policy_of_its_own():
    pod = crashed(exitCode=0, reason="Completed")
    pod["spec"]["containers"][0]["restartPolicy"] = "Never"
    assert "has ended by itself with exit code 0" in explained(pod).cause


@pytest.mark.parametrize(
    ("finished", "state"), [("2026-01-31T11:55:00Z", "Explained"), ("2026-01-31T11:40:00Z", "NoProblem")]
)
def test_restart_of_a_ready_pod_is_a_problem_for_some_minutes(finished, state):
    last = {"terminated": {"exitCode": 3, "finishedAt": finished}}
    container = {**READY["containerStatuses"][0], "restartCount": 1, "lastState": last}
    found = explained(pod_of(status={**READY, "containerStatuses": [container]}))
    assert found.state == state
    if state == "NoProblem":
        assert "the container c has been restarted 1 times" in [each.text for each in found.evidence]


def test_readiness_gate():
    status = {**READY, "conditions": [condition("Initialized", "True"), condition("Ready", "False")]}
    found = explained(pod_of(status=status, readinessGates=[{"conditionType": 'a"b'}]))
    assert found.cause == 'the containers are ready, but the readiness gates are not: a"b'
    assert '\\"' in commands(found)[0]


def test_init_container_that_runs():
    init = [{"name": "wait", "image": "busybox"}]
    statuses = [{"name": "wait", "state": {"running": {"startedAt": "x"}}}]
    pod = pod_of(
        status={**waiting("PodInitializing"), "initContainerStatuses": statuses, "conditions": []},
        initContainers=init,
    )
    found = explained(pod, logs={"wait": "no database"})
    assert (
        found.cause
        == "the init container wait (1 of 1) runs and has not ended: the containers wait for it; it printed: no database"
    )
    assert "no database" in [each.text for each in found.evidence]


def test_evicted_pod():
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    found = explained(pod_of(status=status))
    assert found.cause == "the pod was evicted: The node was low on resource: memory."
    assert commands(found) == ["kubectl -n default delete pod/web"]


@pytest.mark.parametrize(
    ("message", "path", "remedy"),
    [
        (
            'Container c exceeded its local ephemeral storage limit "5Mi". ',
            ("containers", Member("c"), "resources", "limits", "ephemeral-storage"),
            "Raise limits.ephemeral-storage of the container c",
        ),
        (
            "Pod ephemeral local storage usage exceeds the total limit of containers 5Mi. ",
            ("containers",),
            "Raise limits.ephemeral-storage of the containers above 5Mi",
        ),
        (
            'Usage of EmptyDir volume "data" exceeds the limit "5Mi". ',
            ("volumes", Member("data"), "emptyDir", "sizeLimit"),
            "Raise sizeLimit of the volume data",
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 2Mi. ",
            ("containers",),
            "Let the containers request as much memory as they use",
        ),
        ("Another reason.", None, None),
    ],
)
def test_eviction_names_what_to_change(message, path, remedy):
    found = explained(pod_of(status={"phase": "Failed", "reason": "Evicted", "message": message}))
    assert [each.path for each in found.origins] == ([] if path is None else [("spec", *path)])
    texts = [each.text for each in found.remedies if not each.command]
    assert texts == [] if remedy is None else texts[0].startswith(remedy)


def test_pod_of_a_node_that_is_gone_or_not_ready():
    pod = pod_of(status=waiting("ContainerCreating"))
    assert "the node a, which does not exist" in explain(PODS, pod, facts_of(pod)).cause
    lost = explain(PODS, pod, facts_of(pod, node_of(ready="Unknown")))
    assert lost.cause.startswith("the kubelet of a has stopped reporting")
    unready = explain(PODS, pod, facts_of(pod, node_of(ready="False")))
    assert unready.cause.startswith("the container c is being created")


def test_facts_name_what_is_not_collected():
    pod = pod_of(status=READY)
    with pytest.raises(NotCollected) as missing:
        explain(PODS, pod, Facts(NOW, facts_of().gates, {}))
    assert str(missing.value.question) == "get nodes a"


def test_status_is_limited_and_says_what_was_left_out():
    found = explained(crashed(exitCode=1), logs={"c": "\n".join("x" * (MAX_TEXT + 9) for _ in range(60))})
    tree = status_of(found, pod_of(), ["list nodes"])
    assert len(tree["evidence"]) == 50
    assert tree["omitted"]["evidence"] > 0
    assert max(len(each["text"]) for each in tree["evidence"]) == MAX_TEXT + 2
    assert tree["unreadable"] == ["list nodes"]
    assert status_of(Explanation(cause="x"), None, ()) == {"state": "Explained", "cause": "x"}


def test_questions_of_different_kinds_are_different():
    asked = {
        ObjectsOf(PODS, "a"): 1,
        WatchersOf(PODS, "a"): 2,
        EventsOf("a", "b"): 3,
        DependentsOf("a", "b"): 4,
    }
    assert len(asked) == 4


def test_container_that_waits_for_what_is_not_simulated():
    text = "make of the image app is not simulated: the container waits until it is"
    found = explained(pod_of(status=waiting("NotSimulated", text), container={"image": "app"}))
    assert (found.state, found.cause) == ("Explained", f"the container c waits: {text}")
    assert commands(found) == ["mockube images show app", "mockube images add FILE"]


def test_pod_that_is_ready_by_assumption():
    text = "the image app is not simulated: the container runs without it until it is stopped"
    conditions = [
        condition("Initialized", "True"),
        condition("Ready", "True"),
        condition("mockube.dev/NotSimulated", "True", "NotSimulated", text),
    ]
    running = {"name": "c", "ready": True, "restartCount": 0, "state": {"running": {}}}
    status = {"phase": "Running", "conditions": conditions, "containerStatuses": [running]}
    found = explained(pod_of(status=status, container={"image": "app"}))
    assert (found.state, found.cause) == ("NoProblem", f"the pod is ready by assumption: {text}")
    assert commands(found) == ["mockube images show app", "mockube images add FILE"]


def test_restarts_of_a_ready_pod_are_evidence_once_their_ends_are_known():
    def restarted(**fields):
        status = {"name": "c", "ready": True, "restartCount": 3, "state": {"running": {}}, **fields}
        return explained(pod_of(status={**READY, "containerStatuses": [status]}))

    ended = {"lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z"}}}
    text = "the container c has been restarted 3 times"
    assert text in [each.text for each in restarted(**ended).evidence]
    assert text not in [each.text for each in restarted().evidence]
    assert text not in [each.text for each in restarted(restartCount=0, **ended).evidence]


def test_sidecar_that_has_started_does_not_keep_the_next_init_container_from_its_start():
    def explained_with(*, started):
        containers = [
            {"name": "proxy", "image": "envoy", "restartPolicy": "Always"},
            {"name": "setup", "image": "busybox"},
        ]
        states = [
            {"name": "proxy", "started": started, "restartCount": 0, "state": {"running": {}}},
            {"name": "setup", "restartCount": 0, "state": {"running": {}}},
        ]
        status = {
            "initContainerStatuses": states,
            "conditions": [condition("Initialized", "False", "ContainersNotInitialized")],
        }
        return explained(pod_of(initContainers=containers, status=status))

    assert explained_with(started=True).cause.startswith("the init container setup (2 of 2) runs")
    assert "setup" not in explained_with(started=False).cause


def test_larger_limit_keeps_the_quality_of_service():
    def raised(**requests):
        resources = {"limits": {"memory": "64Mi"}, "requests": requests}
        pod = crashed(exitCode=137, reason="OOMKilled")
        pod["spec"]["containers"][0]["resources"] = resources
        return commands(explained(pod))

    assert any('"requests":{"memory":"128Mi"}' in each for each in raised(memory="64Mi"))
    assert not any('"requests"' in each for each in raised(memory="32Mi"))


def test_init_container_that_has_succeeded_is_not_what_the_pod_waits_for():
    def explained_with(code):
        containers = [{"name": name, "image": "busybox"} for name in ("first", "second")]
        states = [
            {"name": "first", "restartCount": 0, "state": {"terminated": {"exitCode": code}}},
            {"name": "second", "restartCount": 0, "state": {"running": {}}},
        ]
        status = {"initContainerStatuses": states, "conditions": [condition("Initialized", "False")]}
        return explained(pod_of(initContainers=containers, status=status))

    assert explained_with(0).cause.startswith("the init container second (2 of 2) runs")
    assert "second" not in explained_with(1).cause
