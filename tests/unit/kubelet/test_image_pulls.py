"""A kubelet pulls the images of a pod: its reasons, messages, events, and the back-off after a pull that failed."""

import pytest

from mockube.container_runtime.image_service import PullFailed, StoredImage
from mockube.container_runtime.simulated.image_service import SimulatedImages
from tests.support.controllers.pods import NodeWithImages, SimulatedPod, container, node_context, pod
from tests.support.images import IMAGES

DETAILS = node_context(details=True)
MISTAKE = "ngnix"
DENIED = (
    "rpc error: code = Unknown desc = failed to pull and unpack image "
    '"docker.io/library/ngnix:latest": failed to resolve reference "docker.io/library/ngnix:latest": '
    "pull access denied, repository does not exist or may require authorization: "
    "server message: insufficient_scope: authorization failed"
)
PULLED_NGINX = ["Pulling", "Pulled", "Created", "Started"]


class Registry(SimulatedImages):
    """Registries whose pulls fail with one error."""

    def __init__(self, error):
        super().__init__(IMAGES)
        self._error = error

    def pull_image(self, image, *, has_credentials):
        del image, has_credentials
        raise PullFailed(self._error)


def simulated_pod(*containers, node=None, **spec):
    return SimulatedPod(pod(*containers, **spec), context=DETAILS, node=node or NodeWithImages())


def waiting(simulated, field="containerStatuses"):
    return simulated.status[field][0]["state"]["waiting"]


def reasons(simulated):
    return [event.reason for event in simulated.events]


def test_image_is_pulled_once_on_a_node():
    node = NodeWithImages()
    first = simulated_pod(container(image="nginx:1.29", imagePullPolicy="IfNotPresent"), node=node)
    size = node.service.image_status("node-1", "nginx:1.29").size
    seconds = round(0.4 + size / 60_000_000, 3)
    assert [(event.type, event.reason, event.message) for event in first.events] == [
        ("Normal", "Pulling", 'Pulling image "nginx:1.29"'),
        (
            "Normal",
            "Pulled",
            f'Successfully pulled image "nginx:1.29" in {seconds:g}s ({seconds:g}s including waiting). Image size: {size} bytes.',
        ),
        ("Normal", "Created", "Container created"),
        ("Normal", "Started", "Container started"),
    ]
    assert {event.part for event in first.events} == {"spec.containers{c}"}
    assert first.ready
    assert first.writes == 1
    second = simulated_pod(container(image="docker.io/library/nginx:1.29"), node=node)
    message = 'Container image "docker.io/library/nginx:1.29" already present on machine and can be accessed by the pod'
    assert second.events[0].message == message


def test_policy_always_pulls_for_each_run():
    subject = container("c", "sh", "-c", "sleep 5; exit 1", imagePullPolicy="Always", image="busybox:1.37")
    simulated = simulated_pod(subject).pass_time(6)
    assert reasons(simulated) == [*PULLED_NGINX, *PULLED_NGINX]
    assert "in 400ms (400ms including waiting)" in simulated.events[5].message, "the layers are there"


def test_older_kubelet_says_that_image_is_present():
    node = NodeWithImages(kubelet_minor=34)
    simulated_pod(node=node)
    again = simulated_pod(node=node)
    assert again.events[0].message == 'Container image "nginx:1.25" already present on machine'


@pytest.mark.thorough
def test_failed_pull_is_retried_with_doubling_delays():
    simulated = simulated_pod(container(image=MISTAKE))
    assert waiting(simulated) == {"message": DENIED, "reason": "ErrImagePull"}
    assert simulated.phase == "Pending"
    assert [(event.type, event.reason, event.message) for event in simulated.events] == [
        ("Normal", "Pulling", 'Pulling image "ngnix"'),
        ("Warning", "Failed", f'Failed to pull image "ngnix": {DENIED}'),
        ("Warning", "Failed", "Error: ErrImagePull"),
    ]
    simulated.events.clear()
    simulated.pass_time(1)
    assert waiting(simulated) == {
        "message": f'Back-off pulling image "ngnix": ErrImagePull: {DENIED}',
        "reason": "ImagePullBackOff",
    }
    assert [(event.type, event.reason, event.message) for event in simulated.events] == [
        ("Normal", "BackOff", 'Back-off pulling image "ngnix"'),
        ("Warning", "Failed", "Error: ImagePullBackOff"),
    ]
    pulls = []
    for second in range(2, 2001):
        simulated.events.clear()
        simulated.pass_time(1)
        if "Pulling" in reasons(simulated):
            pulls.append(second)
    assert pulls == [11, 31, 71, 151, 311, 611, 911, 1211, 1511, 1811]


def test_back_off_is_reported_each_time_the_kubelet_looks_at_the_pod():
    simulated = simulated_pod(container(image=MISTAKE))
    simulated.pass_time(70)
    assert reasons(simulated).count("Pulling") == 3, "after 0, 11 and 31 seconds"
    assert reasons(simulated).count("BackOff") == 5, "after 1, 21, 41, 51 and 61 seconds"


def test_other_changes_do_not_pull_again():
    simulated = simulated_pod(container(image=MISTAKE))
    simulated.annotate(resize_after="1s")
    assert reasons(simulated).count("Pulling") == 1
    assert waiting(simulated)["reason"] == "ErrImagePull"
    assert simulated.writes == 1


def test_corrected_image_is_pulled_at_once():
    simulated = simulated_pod(container(image=MISTAKE)).pass_time(400)
    simulated.events.clear()
    simulated.change(containers=[container(image="nginx:1.29")])
    assert simulated.ready
    assert simulated.status["containerStatuses"][0]["image"] == "nginx:1.29"
    assert reasons(simulated) == PULLED_NGINX
    assert simulated.due is None
    assert simulated.node.state.failures == {}


def test_new_mistake_has_a_back_off_of_its_own():
    simulated = simulated_pod(container(image=MISTAKE)).pass_time(400)
    simulated.change(containers=[container(image="nginx:nope")])
    assert waiting(simulated)["reason"] == "ErrImagePull"
    assert "docker.io/library/nginx:nope: not found" in waiting(simulated)["message"]
    simulated.pass_time(1)
    assert waiting(simulated)["reason"] == "ImagePullBackOff"


def test_running_container_with_new_image_waits_for_it():
    simulated = simulated_pod(container(image="nginx:1.29")).pass_time(60)
    simulated.change(containers=[container(image=MISTAKE)])
    status = simulated.status["containerStatuses"][0]
    assert status["state"]["waiting"]["reason"] == "ErrImagePull"
    assert status["lastState"]["terminated"]["exitCode"] == 0
    assert (status["image"], status["restartCount"]) == ("nginx:1.29", 0), "that of the last run, as upstream"
    simulated.pass_time(100)
    simulated.change(containers=[container(image="nginx:1.28")])
    status = simulated.status["containerStatuses"][0]
    assert (status["image"], status["restartCount"], status["ready"]) == ("nginx:1.28", 1, True)


def test_policy_never_needs_image_on_node():
    subject = container(image="example.com/app:1", imagePullPolicy="Never")
    simulated = simulated_pod(subject)
    message = 'Container image "example.com/app:1" is not present with pull policy of Never'
    assert waiting(simulated) == {"message": message, "reason": "ErrImageNeverPull"}
    assert [(event.type, event.reason, event.message) for event in simulated.events] == [
        ("Warning", "ErrImageNeverPull", message),
        ("Warning", "Failed", "Error: ErrImageNeverPull"),
    ]
    writes = simulated.writes
    simulated.pass_time(21)
    assert reasons(simulated).count("ErrImageNeverPull") == 4, "after 0, 1, 11 and 21 seconds"
    assert simulated.writes == writes
    image = StoredImage(names=("example.com/app:1",))
    simulated.node.service.add_image("node-1", image)
    simulated.pass_time(10)
    assert simulated.ready


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (
            "RegistryUnavailable: connection refused",
            "RegistryUnavailable",
            "image pull failed for nginx:1.25 because the registry is unavailable: connection refused",
        ),
        (
            "SignatureValidationFailed",
            "SignatureValidationFailed",
            "image pull failed for nginx:1.25 because the signature validation failed",
        ),
    ],
)
def test_errors_of_the_run_time_become_reasons(error, reason, message):
    simulated = simulated_pod(node=NodeWithImages(service=Registry(error)))
    assert waiting(simulated) == {"message": message, "reason": reason}
    assert simulated.events[-1].message == f"Error: {reason}"
    simulated.pass_time(1)
    assert waiting(simulated)["message"] == f'Back-off pulling image "nginx:1.25": {reason}: {message}'


def test_containers_with_one_image_share_its_back_off():
    simulated = simulated_pod(container("a", image=MISTAKE), container("b", image=MISTAKE), container("d"))
    assert simulated.containers() == {"a": "ErrImagePull", "b": "ImagePullBackOff", "d": "running"}
    assert reasons(simulated).count("Pulling") == 2, "one for each image"


def test_init_container_without_image_holds_up_the_pod():
    simulated = simulated_pod(init=[container("i", "true", image=MISTAKE)])
    assert waiting(simulated, "initContainerStatuses")["reason"] == "ErrImagePull"
    assert simulated.containers() == {"c": "PodInitializing"}
    assert simulated.events[0].part == "spec.initContainers{i}"


def test_sidecar_and_ephemeral_container_pull():
    sidecar = container("s", image=MISTAKE, restartPolicy="Always")
    simulated = simulated_pod(init=[sidecar])
    assert simulated.containers("initContainerStatuses") == {"s": "ErrImagePull"}
    simulated = simulated_pod().change(ephemeralContainers=[container("e", image=MISTAKE)])
    assert simulated.containers("ephemeralContainerStatuses") == {"e": "ErrImagePull"}
    assert simulated.ready


def test_image_volume_is_pulled_before_its_container():
    volumes = [{"name": "v", "image": {"reference": "busybox:1.37", "pullPolicy": "Always"}}]
    mount = {"name": "v", "mountPath": "/v"}
    simulated = simulated_pod(container(volumeMounts=[mount]), volumes=volumes)
    assert simulated.ready
    assert reasons(simulated) == ["Pulling", "Pulled", *PULLED_NGINX]
    assert [event.part for event in simulated.events[:3]] == ["", "", "spec.containers{c}"]


def test_event_tells_of_a_volume_of_an_image_that_is_not_known():
    volumes = [{"name": "v", "image": {"reference": "example.com/model:1"}}]
    simulated = simulated_pod(container(volumeMounts=[{"name": "v", "mountPath": "/v"}]), volumes=volumes)
    message = "the image example.com/model:1 is not simulated: the volume v is empty"
    assert [event.message for event in simulated.unknown_images] == [message]


def test_container_waits_for_its_image_volume_and_others_do_not():
    volumes = [{"name": "v", "image": {"reference": MISTAKE}}]
    mount = {"name": "v", "mountPath": "/v"}
    simulated = simulated_pod(container("a", volumeMounts=[mount]), container("b"), volumes=volumes)
    assert simulated.containers() == {"a": "ErrImagePull", "b": "running"}
    assert waiting(simulated)["message"] == DENIED
    assert [(event.reason, event.part) for event in simulated.events[:3]] == [
        ("Pulling", ""),
        ("Failed", ""),
        ("Failed", "spec.containers{a}"),
    ]
    simulated.pass_time(1)
    assert simulated.containers()["a"] == "ImagePullBackOff"


def test_private_image_needs_credentials_of_each_pod():
    private = StoredImage(names=("registry.example.com/app:1",), needs_credentials=True)
    service = Registry("denied")
    service.add_image("node-1", private)
    subject = container(image="registry.example.com/app:1", imagePullPolicy="IfNotPresent")
    allowed = NodeWithImages(service=service, credentials=("registry.example.com/app:1",))
    assert simulated_pod(subject, node=allowed).ready
    others = simulated_pod(subject, node=NodeWithImages(service=service))
    assert others.containers() == {"c": "ErrImagePull"}
    older = simulated_pod(subject, node=NodeWithImages(service=service, kubelet_minor=34))
    assert older.ready, "kubelets before 1.35 do not check them"


def test_credentials_are_used_only_if_needed():
    class Node(NodeWithImages):
        def has_credentials(self, image):
            asked.append(image)
            return False

    asked = []
    simulated_pod(node=Node())
    assert asked == []
    simulated_pod(container(image=MISTAKE), node=Node())
    assert asked == [MISTAKE]


def test_image_is_pulled_before_variables_are_checked():
    variable = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}
    simulated = simulated_pod(container(env=[variable]))
    assert simulated.containers() == {"c": "CreateContainerConfigError"}
    assert reasons(simulated) == ["Pulling", "Pulled", "Failed"]
    simulated = simulated_pod(container(image=MISTAKE, env=[variable]))
    assert simulated.containers() == {"c": "ErrImagePull"}


def test_pull_is_reported_with_the_start_after_a_hook():
    hook = {"postStart": {"sleep": {"seconds": 5}}}
    simulated = simulated_pod(container(lifecycle=hook)).pass_time(6)
    assert reasons(simulated) == PULLED_NGINX


def test_annotation_wins():
    annotations = {"mockube.dev/waiting-reason": "ImagePullBackOff"}
    simulated = simulated_pod(container(image=MISTAKE), annotations=annotations)
    assert waiting(simulated) == {"reason": "ImagePullBackOff"}
    assert reasons(simulated) == []


def test_missing_pull_secret_is_reported_with_each_failed_pull():
    simulated = simulated_pod(container(image=MISTAKE), imagePullSecrets=[{"name": "s"}])
    warning = "Unable to retrieve some image pull secrets (s); attempting to pull the image may not succeed."
    assert [event.message for event in simulated.events].count(warning) == 1
    simulated.pass_time(12)
    assert [event.message for event in simulated.events].count(warning) == 2, "not with the back-off"


def test_unknown_programs_are_reported_when_the_image_is_there():
    simulated = simulated_pod(container("c", "make", image=MISTAKE), policy="Never")
    assert "NotSimulated" not in reasons(simulated)
    simulated.change(containers=[container("c", "make", image="gcc:14")])
    assert reasons(simulated).count("NotSimulated") == 1


# --- images of which nothing is known


@pytest.mark.parametrize(
    ("subject", "annotations", "expected"),
    [
        pytest.param(container(image="example.org/app"), {}, 1, id="no command"),
        pytest.param(container(image="nginx"), {}, 0, id="a known image"),
        pytest.param(container(image="registry.k8s.io/pause:3.10"), {}, 0, id="pause"),
        pytest.param(container("c", "sleep", "9", image="app"), {}, 0, id="a simulated command"),
        pytest.param(container(image="app"), {"mockube.dev/run": "sleep 9"}, 0, id="a script"),
        pytest.param(container(image="app"), {"mockube.dev/exit-after": "9s"}, 0, id="an annotation"),
    ],
)
def test_unknown_image_is_reported(subject, annotations, expected):
    simulated = simulated_pod(subject, annotations=annotations)
    assert len(simulated.unknown_images) == expected
    simulated.pass_time(60)
    assert len(simulated.unknown_images) == expected


def test_event_of_unknown_image_says_what_becomes_of_the_container():
    simulated = simulated_pod(container(image="example.org/app"))
    assert [(event.reason, event.message, event.part) for event in simulated.unknown_images] == [
        (
            "NotSimulated",
            "the image example.org/app is not simulated: the container runs without it until it is stopped",
            "spec.containers{c}",
        )
    ]
    simulated.change(containers=[container(image="example.org/app:2")])
    assert len(simulated.unknown_images) == 2, "a changed image is reported, too"


def test_unknown_images_fail_with_the_flag():
    node = NodeWithImages(service=SimulatedImages(IMAGES, fails_unknown=True))
    simulated = simulated_pod(container("a", image="example.org/app"), container("b"), node=node)
    assert simulated.containers() == {"a": "ErrImagePull", "b": "running"}
    assert waiting(simulated)["message"] == (
        "rpc error: code = NotFound desc = failed to pull and unpack image "
        '"example.org/app:latest": nothing is known of this image, and the flag --unknown-images=fail is set: '
        "`mockube images load` says that it exists"
    )
