"""A simulated pod waits for what a kubelet needs before it starts the containers, and starts when it is there."""

import pytest
from msgspec.structs import replace

from mockube.client.kinds import CONFIG_MAPS, SECRETS
from mockube.kubelet.start_checks import PossibleObjects
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

MAP = {"data": {"a": "1"}, "binaryData": {"b": "MQ=="}}
SECRET = {"data": {"a": "MQ=="}}
CONTEXT = node_context(details=True, config_maps={"m": MAP}, secrets={"s": SECRET})


def with_volume(source, **spec):
    mounted = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    return pod(mounted, volumes=[{"name": "v", **source}], **spec)


def warnings(simulated):
    return [(event.reason, event.message) for event in simulated.events if event.type == "Warning"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMap": {"name": "x"}}, 'configmap "x" not found'),
        ({"secret": {"secretName": "x"}}, 'secret "x" not found'),
        (
            {"configMap": {"name": "m", "items": [{"key": "c", "path": "c"}]}},
            "configmap references non-existent config key: c",
        ),
        (
            {"secret": {"secretName": "s", "items": [{"key": "c", "path": "c"}]}},
            "references non-existent secret key: c",
        ),
        ({"projected": {"sources": [{"secret": {"name": "x"}}]}}, 'secret "x" not found'),
        (
            {"projected": {"sources": [{"secret": {"name": "x"}}, {"configMap": {"name": "y"}}]}},
            '[secret "x" not found, configmap "y" not found]',
        ),
        (
            {
                "downwardAPI": {
                    "items": [
                        {"path": "a", "resourceFieldRef": {"containerName": "none", "resource": "limits.cpu"}}
                    ]
                }
            },
            "container none not found",
        ),
    ],
)
def test_volume_of_missing_object_is_not_mounted(source, message):
    simulated = SimulatedPod(with_volume(source), context=CONTEXT)
    assert (simulated.phase, simulated.containers()) == ("Pending", {"c": "ContainerCreating"})
    assert warnings(simulated)[0] == ("FailedMount", f'MountVolume.SetUp failed for volume "v" : {message}')
    assert "podIP" not in simulated.status
    assert simulated.conditions()["PodReadyToStartContainers"] == "False"


@pytest.mark.parametrize(
    "source",
    [
        {"configMap": {"name": "m", "items": [{"key": "b", "path": "b"}]}},
        {"configMap": {"name": "x", "optional": True}},
        {"configMap": {"name": "m", "optional": True, "items": [{"key": "c", "path": "c"}]}},
        {"secret": {"secretName": "s"}},
        {"secret": {"secretName": "x", "optional": True}},
        {"projected": {"sources": [{"secret": {"name": "x", "optional": True}}]}},
        {"emptyDir": {}},
    ],
)
def test_volume_of_present_or_optional_object_is_mounted(source):
    simulated = SimulatedPod(with_volume(source), context=CONTEXT)
    assert (simulated.ready, warnings(simulated)) == (True, [])


def test_volume_that_no_container_mounts_is_not_checked():
    assert SimulatedPod(pod(volumes=[{"name": "v", "configMap": {"name": "x"}}]), context=CONTEXT).ready


def test_pod_starts_when_object_appears():
    simulated = SimulatedPod(with_volume({"configMap": {"name": "x"}}), context=CONTEXT)
    simulated.context = node_context(details=True, config_maps={"x": MAP})
    assert simulated.pass_time(1).ready
    assert simulated.status["podIP"]


def test_mount_is_tried_again_with_back_off():
    simulated = SimulatedPod(with_volume({"configMap": {"name": "x"}}), context=CONTEXT).pass_time(62)
    attempts = [reason for reason, _ in warnings(simulated)]
    assert attempts == ["FailedMount"] * 7
    simulated.pass_time(300)
    message = (
        "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
        "failed to process volumes=[]: context deadline exceeded"
    )
    assert ("FailedMount", message) in warnings(simulated)


def env_from(field, name, **fields):
    return {"envFrom": [{field: {"name": name, **fields}}]}


def env(field, name, key, **fields):
    return {"env": [{"name": "A", "valueFrom": {field: {"name": name, "key": key, **fields}}}]}


RESOURCE_OF_NOBODY = {
    "env": [
        {"name": "A", "valueFrom": {"resourceFieldRef": {"containerName": "none", "resource": "limits.cpu"}}}
    ]
}
NON_ROOT = {"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (env_from("configMapRef", "x"), 'configmap "x" not found'),
        (env_from("secretRef", "x"), 'secret "x" not found'),
        (env("configMapKeyRef", "x", "a"), 'configmap "x" not found'),
        (env("configMapKeyRef", "m", "c"), "couldn't find key c in ConfigMap ns/m"),
        (env("configMapKeyRef", "m", "b"), "couldn't find key b in ConfigMap ns/m"),
        (env("secretKeyRef", "x", "a"), 'secret "x" not found'),
        (env("secretKeyRef", "s", "c"), "couldn't find key c in Secret ns/s"),
        (RESOURCE_OF_NOBODY, "container none not found"),
        (
            {"securityContext": {"runAsNonRoot": True}, "image": "memcached:1.6"},
            (
                "container has runAsNonRoot and image has non-numeric user (memcache), cannot verify user is non-root "
                '(pod: "p_ns(uid-1)", container: c)'
            ),
        ),
        (NON_ROOT, 'container\'s runAsUser breaks non-root policy (pod: "p_ns(uid-1)", container: c)'),
    ],
)
def test_container_with_invalid_configuration_is_not_created(fields, message):
    simulated = SimulatedPod(pod(container(**fields)), context=CONTEXT)
    state = simulated.status["containerStatuses"][0]["state"]
    assert state == {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    assert (simulated.phase, simulated.status["podIP"]) == ("Pending", "10.244.0.7")
    assert warnings(simulated) == [("Failed", f"Error: {message}")]
    assert len(warnings(simulated.pass_time(10))) == 2


@pytest.mark.parametrize(
    "fields",
    [
        env_from("configMapRef", "m"),
        env_from("configMapRef", "x", optional=True),
        env("secretKeyRef", "s", "a"),
        env("secretKeyRef", "s", "c", optional=True),
        {"securityContext": {"runAsNonRoot": True}, "image": "example.org/unknown"},
        {"securityContext": {"runAsNonRoot": True}, "image": "bitnami/nginx"},
        {"securityContext": {"runAsNonRoot": True}, "image": "bitnami/memcached"},
        {"securityContext": {"runAsNonRoot": True, "runAsUser": 11211}, "image": "memcached:1.6"},
        {"image": "redis", "securityContext": {"runAsNonRoot": True, "runAsUser": 1}},
    ],
)
def test_container_with_valid_configuration_is_created(fields):
    assert SimulatedPod(pod(container(**fields)), context=CONTEXT).ready


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ("nginx:a:b", "invalid reference format"),
        ("Nginx", "invalid reference format: repository name (library/Nginx) must be lowercase"),
        ("a" * 256, "repository name must not be more than 255 characters"),
        ("nginx@sha256:" + "a" * 32, "invalid checksum digest length"),
    ],
)
def test_container_with_invalid_image_is_not_created(image, problem):
    simulated = SimulatedPod(pod(container(image=image)), context=CONTEXT)
    message = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {problem}'
    state = simulated.status["containerStatuses"][0]["state"]
    assert state == {"waiting": {"reason": "InvalidImageName", "message": message}}
    assert warnings(simulated) == [("InspectFailed", message), ("Failed", "Error: InvalidImageName")]
    simulated.change(containers=[container()])
    assert (simulated.ready, simulated.status["containerStatuses"][0]["image"]) == (True, "nginx:1.25")


def test_first_init_container_waits_for_its_secret():
    init = [container("i", "true", **env_from("secretRef", "x"))]
    simulated = SimulatedPod(pod(init=init), context=CONTEXT)
    assert simulated.containers("initContainerStatuses") == {"i": "CreateContainerConfigError"}
    assert simulated.containers() == {"c": "PodInitializing"}


def test_pod_whose_deadline_passes_before_its_init_containers_ran_was_not_initialized():
    waiting = container("i", envFrom=[{"secretRef": {"name": "x"}}])
    subject = pod(container("c"), initContainers=[waiting], activeDeadlineSeconds=5)
    failed = SimulatedPod(subject, context=CONTEXT).pass_time(5)
    assert (failed.phase, failed.conditions()["Initialized"]) == ("Failed", "ContainersNotInitialized")
    ran = SimulatedPod(pod(container("c"), initContainers=[container("i", "true")], activeDeadlineSeconds=5))
    assert ran.pass_time(5).conditions()["Initialized"] == "True"


def test_restart_waits_for_object_that_was_deleted():
    simulated = SimulatedPod(pod(container("c", "sleep", "5", **env_from("secretRef", "s"))), context=CONTEXT)
    simulated.context = replace(CONTEXT, objects=node_context().objects)
    simulated.pass_time(6)
    status = simulated.status["containerStatuses"][0]
    assert status["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (0, 0)
    simulated.context = CONTEXT
    simulated.pass_time(10)
    assert simulated.status["containerStatuses"][0]["restartCount"] == 1


def test_missing_pull_secret_is_an_event_only():
    simulated = SimulatedPod(pod(imagePullSecrets=[{"name": "s"}, {"name": "x"}]), context=CONTEXT)
    assert simulated.ready
    assert warnings(simulated) == [
        (
            "FailedToRetrieveImagePullSecret",
            "Unable to retrieve some image pull secrets (x); attempting to pull the image may not succeed.",
        )
    ]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("", []), ("ImagePullBackOff", ["FailedToRetrieveImagePullSecret"]), ("CreateContainerError", [])],
)
def test_newer_kubelet_reports_missing_pull_secret_if_image_cannot_be_pulled(reason, expected):
    annotations = {"mockube.dev/waiting-reason": reason} if reason else {}
    subject = pod(imagePullSecrets=[{"name": "x"}], annotations=annotations)
    simulated = SimulatedPod(subject, context=replace(CONTEXT, kubelet_minor=37))
    assert [reported for reported, _ in warnings(simulated)] == expected


@pytest.mark.parametrize(
    ("minor", "details"),
    [(36, {}), (37, {"reason": "PodSandboxNotReady", "message": "no pod sandbox exists"})],
)
def test_newer_kubelet_says_why_pod_is_not_ready_to_start(minor, details):
    subject = with_volume({"secret": {"secretName": "x"}})
    simulated = SimulatedPod(subject, context=replace(CONTEXT, kubelet_minor=minor))
    (condition,) = (
        one for one in simulated.status["conditions"] if one["type"] == "PodReadyToStartContainers"
    )
    present = {name: condition[name] for name in ("reason", "message") if name in condition}
    assert (condition["status"], present) == ("False", details)


def test_annotation_ignores_missing_objects():
    subject = with_volume({"secret": {"secretName": "x"}}, annotations={"mockube.dev/ignore-missing": "true"})
    assert SimulatedPod(subject, context=CONTEXT).ready


def test_objects_that_may_exist_do_not_block_pods():
    possible = replace(CONTEXT, objects=PossibleObjects(CONTEXT.objects, {CONFIG_MAPS, SECRETS}))
    mounted = with_volume({"secret": {"secretName": "x", "items": [{"key": "k", "path": "k"}]}})
    assert SimulatedPod(mounted, context=possible).ready
    assert SimulatedPod(pod(container(**env("configMapKeyRef", "x", "a"))), context=possible).ready
    assert not SimulatedPod(pod(container(**env("configMapKeyRef", "m", "c"))), context=possible).ready
    secrets_only = replace(CONTEXT, objects=PossibleObjects(CONTEXT.objects, {SECRETS}))
    assert SimulatedPod(mounted, context=secrets_only).ready
    assert not SimulatedPod(pod(container(**env("configMapKeyRef", "x", "a"))), context=secrets_only).ready


def test_container_that_waited_for_key_starts_in_a_later_second_than_the_others():
    """As with a kubelet, so that the times of containers with launch priorities differ."""
    waiting = container("low", image="redis", **env("configMapKeyRef", "m", "c"))
    simulated = SimulatedPod(pod(container("high"), waiting), context=CONTEXT)
    assert simulated.containers() == {"high": "running", "low": "CreateContainerConfigError"}
    simulated.context = node_context(details=True, config_maps={"m": {"data": {"c": "1"}}})
    assert simulated.pass_time(0.5).containers()["low"] == "CreateContainerConfigError"
    assert simulated.pass_time(0.5).containers()["low"] == "running"
    high, low = simulated.status["containerStatuses"]
    assert high["state"]["running"]["startedAt"] < low["state"]["running"]["startedAt"]


def test_container_that_waited_for_key_of_first_container_starts_at_once():
    waiting = container("only", **env("configMapKeyRef", "m", "c"))
    simulated = SimulatedPod(pod(waiting), context=CONTEXT)
    simulated.context = node_context(details=True, config_maps={"m": {"data": {"c": "1"}}})
    assert simulated.pass_time(0.1).ready
