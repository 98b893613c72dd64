"""The images of nodes: which of them the status reports, and what a restarted manager knows of them."""

from mockube.client.podview import PodView
from mockube.container_runtime.image_service import StoredImage
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.image_service import SimulatedImages
from mockube.kubelet.image_manager import ImageManager
from mockube.kubelet.node_images import MAX_IMAGES, reported_images
from mockube.kubelet.start_checks import NO_OBJECTS
from tests.support.controllers.pods import START, container, pod
from tests.support.images import IMAGES


def image(name, size):
    return StoredImage(names=(f"docker.io/library/{name}@sha256:0", f"docker.io/library/{name}:1"), size=size)


def entry(name, size):
    return {
        "names": [f"docker.io/library/{name}@sha256:0", f"docker.io/library/{name}:1"],
        "sizeBytes": size,
    }


def test_largest_images_are_first_and_have_a_limit():
    images = [image(f"a{number}", number) for number in range(MAX_IMAGES + 10)]
    reported = reported_images([], images)
    assert [one["sizeBytes"] for one in reported] == [*range(MAX_IMAGES + 9, 9, -1)]
    assert reported_images([], [image("a", 1)]) == [entry("a", 1)]


def test_images_of_a_pool_stay():
    pool = [{"names": [f"p{number}"], "sizeBytes": 0} for number in range(MAX_IMAGES - 1)]
    reported = reported_images(pool, [image("a", 5), image("b", 9)])
    assert reported == [entry("b", 9), *pool]
    assert reported_images([{"names": ["a:1"], "sizeBytes": 7}], [image("a", 5)]) == [
        {"names": ["a:1", "docker.io/library/a@sha256:0"], "sizeBytes": 7}
    ]


def test_tags_of_one_image_are_one_entry():
    digest = "docker.io/library/a@sha256:0"
    images = [StoredImage(names=(digest, f"docker.io/library/a:{tag}"), size=3) for tag in ("x", "y")]
    names = [digest, "docker.io/library/a:x", "docker.io/library/a:y"]
    assert reported_images([], images) == [{"names": names, "sizeBytes": 3}]
    assert reported_images(reported_images([], images), images) == [{"names": names, "sizeBytes": 3}]


# --- the images of all nodes


class Objects:
    """A cache of objects by name, and of pods by node."""

    def __init__(self, *objects):
        self._objects = objects

    def get(self, _namespace, name):
        return next((obj for obj in self._objects if obj["metadata"]["name"] == name), None)

    def by_index(self, _index, node):
        return [PodView.of(obj) for obj in self._objects if obj["spec"]["nodeName"] == node]


def manager_of(node, *pods, records=None):
    changed = []
    manager = ImageManager(
        records or Records(),
        SimulatedImages(IMAGES),
        Objects(node),
        Objects(*pods),
        None,
        on_change=changed.append,
    )
    return manager, changed


def node(*names):
    images = [{"names": [name], "sizeBytes": 5} for name in names]
    return {"metadata": {"name": "node-1"}, "status": {"images": images}}


def run(manager, *containers):
    """Run a step of a pod; return the messages of the events about its first image."""
    subject = PodView.of(pod(*containers))
    access = manager.begin(subject, NO_OBJECTS, 37)
    ensured = access.start(START).ensure(subject.object["spec"]["containers"][0], 0)
    manager.note_step(subject, access)
    return [event.reason for event in ensured.events]


def test_node_with_a_new_image_is_reported_once():
    manager, changed = manager_of(node())
    assert run(manager, container()) == ["Pulling", "Pulled"]
    assert run(manager, container()) == ["Pulled"]
    assert run(manager, container(imagePullPolicy="Always")) == ["Pulling", "Pulled"]
    assert changed == ["node-1"]


def test_computed_step_pulls_nothing_before_it_is_noted():
    manager, changed = manager_of(node())
    access = manager.begin(PodView.of(pod()), NO_OBJECTS, 37)
    for _ in range(2):
        assert len(access.start(START).ensure(container(), 0).events) == 2
    assert changed == []


def test_images_in_the_status_are_on_the_node():
    manager, changed = manager_of(node("app:1"))
    assert run(manager, container(image="app:1", imagePullPolicy="Never")) == ["Pulled"]
    manager.note_status(node("other:1"))
    assert run(manager, container(image="other:1", imagePullPolicy="Never")) == ["Pulled"]
    assert changed == []


def test_restarted_manager_knows_the_images_of_pods_that_have_run():
    ran = {"name": "c", "state": {"running": {}}}
    waits = {"name": "d", "state": {"waiting": {"reason": "ErrImagePull"}}}
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2030-01-01T00:00:00Z"}}
    backs_off = {"name": "e", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended}
    earlier = pod(
        container(image="nginx:1.29"), container("d", image="redis:8"), container("e", image="httpd:2.4")
    )
    earlier["status"]["containerStatuses"] = [ran, waits, backs_off]
    manager, _ = manager_of(node(), earlier)
    assert run(manager, container(image="nginx:1.29")) == ["Pulled"]
    assert run(manager, container(image="httpd:2.4")) == ["Pulled"]
    assert run(manager, container(image="redis:8")) == ["Pulling", "Pulled"]


def test_new_node_of_the_same_name_has_no_images():
    manager, _ = manager_of(node())
    run(manager, container())
    manager.forget_node("node-1")
    assert run(manager, container()) == ["Pulling", "Pulled"]


def test_back_off_of_a_deleted_pod_is_forgotten():
    records = Records()
    manager, _ = manager_of(node(), records=records)
    assert run(manager, container(image="ngnix")) == ["Pulling", "Failed", "Failed"]
    assert run(manager, container(image="ngnix")) == []
    records.remove("uid-1")
    assert run(manager, container(image="ngnix")) == ["Pulling", "Failed", "Failed"]
