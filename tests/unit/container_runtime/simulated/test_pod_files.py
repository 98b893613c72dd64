"""The files of simulated containers: which objects are loaded for them."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.simulated.live_containers import LiveContainers
from mockube.container_runtime.simulated.pod_files import PodFiles
from tests.support.controllers.pods import container, pod

MOUNT = {"name": "v", "mountPath": "/data"}
VOLUMES = [{"name": "v", "emptyDir": {}}]


RUNNING = {
    "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}},
    "restartCount": 0,
    "containerID": "mockube://1",
}


class Loader:
    """Counts the loads of references by the container's name."""

    def __init__(self):
        self.loaded = []

    async def load_shared(self, _, container, *_restarts):
        self.loaded.append(container["name"])
        return References()


@pytest.mark.parametrize("others", [[], ["other"]])
async def test_container_of_an_earlier_version_of_the_pod_is_the_same_one(others):
    names = ["c", *others]
    tree = pod(*(container(name, volumeMounts=[MOUNT]) for name in names), volumes=VOLUMES)
    tree["status"]["containerStatuses"] = [RUNNING | {"name": name} for name in names]
    earlier = container("c", volumeMounts=[MOUNT])
    loader = Loader()
    await PodFiles(loader, LiveContainers(), SteppedClock()).file_system(
        tree, earlier, references=References()
    )
    assert loader.loaded == others


async def test_folder_of_a_sub_path_is_made_when_its_container_starts():
    mount = MOUNT | {"mountPath": "/etc/app.yml", "subPath": "app.yml"}
    init = container("i", "cp", "/a", "/data/app.yml", volumeMounts=[MOUNT])
    tree = pod(container("c", volumeMounts=[mount]), init=[init], volumes=VOLUMES)
    pod_files = PodFiles(Loader(), LiveContainers(), SteppedClock())
    found = await pod_files.file_system(tree, init)
    assert not found.exists("/data/app.yml")
    tree["status"]["containerStatuses"] = [RUNNING | {"name": "c"}]
    found = await pod_files.file_system(tree, init)
    assert found.exists("/data/app.yml")
