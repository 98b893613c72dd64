"""The contract of the images of run-times: one suite for all of them."""

from pathlib import Path

import pytest

from mockube.container_runtime.image_service import PullFailed, StoredImage
from mockube.container_runtime.images.table import ImageTable, LiveImages
from mockube.container_runtime.process.image_service import ProcessImages
from mockube.container_runtime.process.images import image_map
from mockube.container_runtime.simulated.image_service import SimulatedImages
from mockube.kubelet.runtimes import ChosenImages

LOCAL = "example.org/local:1"


def process_images():
    return ProcessImages(image_map({LOCAL: {"command": ["true"]}}, Path()))


SERVICES = {
    "simulated": SimulatedImages,
    "processes": lambda _: process_images(),
    "both": lambda images: ChosenImages(process_images(), SimulatedImages(images)),
}


@pytest.fixture(params=SERVICES)
def service(request):
    return SERVICES[request.param](ImageTable())


@pytest.fixture(params=["simulated", "both"])
def storing_service(request):
    """A service whose nodes have images of their own."""
    return SERVICES[request.param](ImageTable())


def test_image_without_a_pull_is_not_on_the_node(service):
    assert service.image_status("node-1", "nginx:1.29") is None
    assert list(service.list_images("node-1")) == []


def test_image_of_processes_is_on_every_node():
    for name in ("processes", "both"):
        service = SERVICES[name](ImageTable())
        image = service.image_status("node-1", LOCAL)
        assert image.is_local
        assert service.pull_image(LOCAL, has_credentials=False) == image
        assert list(service.list_images("node-1")) == []


def test_pull_that_fails_says_why(service):
    with pytest.raises(PullFailed, match="registry"):
        service.pull_image("registry.invalid/app:1", has_credentials=False)


def test_pulled_image_is_on_its_node_under_all_names(storing_service):
    image = storing_service.pull_image("nginx:1.29", has_credentials=False)
    assert storing_service.image_status("node-1", "nginx:1.29") is None, "until it is added"
    storing_service.add_image("node-1", image)
    for name in ("nginx:1.29", "docker.io/library/nginx:1.29", image.names[0]):
        assert storing_service.image_status("node-1", name) == image
    assert storing_service.image_status("node-2", "nginx:1.29") is None
    assert list(storing_service.list_images("node-1")) == [image]
    assert image.size > 0
    storing_service.forget_node("node-1")
    assert storing_service.image_status("node-1", "nginx:1.29") is None


def test_image_without_a_tag_is_the_latest(storing_service):
    storing_service.add_image("node-1", StoredImage(names=("docker.io/library/app:latest",)))
    assert storing_service.image_status("node-1", "app") is not None
    assert storing_service.image_status("node-1", "app:1") is None


@pytest.mark.parametrize("name", ["simulated", "both"])
def test_loaded_image_is_on_every_node(name):
    images = ImageTable()
    service = SERVICES[name](images)
    images.set_live(LiveImages({}, frozenset({"docker.io/library/mine:dev"})))
    assert service.image_status("node-1", "mine:dev") is not None
    assert SimulatedImages(images, fails_unknown=True).pull_image("mine:dev", has_credentials=False).size > 0
    images.set_live(LiveImages())
    assert service.image_status("node-1", "mine:dev") is None


def test_image_that_is_pulled_with_credentials_may_need_them(storing_service):
    private = "my-private-registry.io/team/app:1"
    with pytest.raises(PullFailed):
        storing_service.pull_image(private, has_credentials=False)
    assert storing_service.pull_image(private, has_credentials=True).needs_credentials
    assert not storing_service.pull_image("nginx:1.29", has_credentials=True).needs_credentials
