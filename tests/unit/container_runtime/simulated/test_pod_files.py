"""The files of simulated containers: which objects are loaded for them."""

import shutil
from pathlib import Path

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.files.stored_contents import decode
from mockube.container_runtime.simulated.live_containers import LiveContainers
from mockube.container_runtime.simulated.pod_files import PodFiles
from mockube.container_runtime.start_errors import StartError
from tests.support.controllers.pods import container, pod
from tests.support.images import IMAGES

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
    await PodFiles(Records(), IMAGES, loader, LiveContainers(IMAGES, Records()), SteppedClock()).file_system(
        tree, earlier, references=References()
    )
    assert loader.loaded == others


async def test_folder_of_a_sub_path_is_made_when_its_container_starts():
    mount = MOUNT | {"mountPath": "/etc/app.yml", "subPath": "app.yml"}
    init = container("i", "cp", "/a", "/data/app.yml", volumeMounts=[MOUNT])
    tree = pod(container("c", volumeMounts=[mount]), init=[init], volumes=VOLUMES)
    pod_files = PodFiles(Records(), IMAGES, Loader(), LiveContainers(IMAGES, Records()), SteppedClock())
    found = await pod_files.file_system(tree, init)
    assert not found.exists("/data/app.yml")
    tree["status"]["containerStatuses"] = [RUNNING | {"name": "c"}]
    found = await pod_files.file_system(tree, init)
    assert found.exists("/data/app.yml")


# --- volumes of processes


class Kept:
    """Notes what a run-time keeps."""

    def __init__(self):
        self.noted, self.lost = [], []

    def connect(self, _): ...

    def is_kept(self, _):
        return False

    def note_change(self, volume):
        self.noted.append(volume)

    def note_loss(self, volume, problem):
        self.lost.append((volume, problem))

    def remove_pod(self, _): ...


PASSWORDS = Path("/etc/passwd").read_bytes()
"""Those of this machine."""
PROCESS = container("p", volumeMounts=[MOUNT | {"mountPath": "/v"}])
CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
BOUND = References(
    storage={
        ("persistentvolumeclaims", "data"): {
            "spec": {"volumeName": "pv"},
            "status": {"capacity": {"storage": "1Ki"}},
        },
        ("persistentvolumes", "pv"): {"metadata": {"name": "pv", "uid": "pv-1"}, "spec": {}},
    }
)


def shared_files(kept=None):
    live = LiveContainers(IMAGES, Records(), lambda _, name: name == "p")
    return PodFiles(Records(), IMAGES, Loader(), live, SteppedClock(), kept or Kept())


def pod_with_process(volumes=VOLUMES, **mount):
    tree = pod(container("c", volumeMounts=[MOUNT | mount]), PROCESS, volumes=volumes)
    tree["status"]["containerStatuses"] = [RUNNING | {"name": name} for name in ("c", "p")]
    return tree


async def test_contents_move_into_a_folder_when_a_process_mounts_the_volume(tmp_path):
    tree, pod_files = pod_with_process(), shared_files()
    before = await pod_files.file_system(tree, tree["spec"]["containers"][0])
    before.write("/data/before", b"1")
    found = await pod_files.mount(tree, PROCESS, References(), tmp_path)
    assert (found["/v"] / "before").read_text() == "1"
    (found["/v"] / "after").write_text("2")
    # Those who had the files before see the same folder, as do those who come later.
    assert before.read("/data/after") == b"2"
    later = await pod_files.file_system(tree, tree["spec"]["containers"][0])
    assert [*later.children("/data")] == ["after", "before"]
    assert await pod_files.mount(tree, PROCESS, References(), tmp_path) == found


async def test_init_container_has_written_before_a_process_starts(tmp_path):
    init = container("i", "sh", "-c", "echo x > /data/f", volumeMounts=[MOUNT])
    tree = pod(PROCESS, init=[init], volumes=VOLUMES)
    end = {"startedAt": "2030-01-01T00:00:00Z", "finishedAt": "2030-01-01T00:00:01Z", "exitCode": 0}
    tree["status"]["initContainerStatuses"] = [RUNNING | {"name": "i", "state": {"terminated": end}}]
    found = await shared_files().mount(tree, PROCESS, References(), tmp_path)
    assert (found["/v"] / "f").read_text() == "x\n"


async def test_command_of_a_process_is_not_repeated_in_the_simulation(tmp_path):
    writer = container("p", "sh", "-c", "echo twice > /v/f", volumeMounts=PROCESS["volumeMounts"])
    tree = pod(container("c", volumeMounts=[MOUNT]), writer, volumes=VOLUMES)
    tree["status"]["containerStatuses"] = [RUNNING | {"name": name} for name in ("c", "p")]
    files = await shared_files().file_system(tree, tree["spec"]["containers"][0])
    assert not files.exists("/data/f")


@pytest.mark.parametrize("planted", ["../..", "/etc"])
async def test_sub_path_that_is_a_link_of_a_process_is_not_mounted(tmp_path, planted):
    tree, pod_files = pod_with_process(), shared_files()
    found = await pod_files.mount(tree, PROCESS, References(), tmp_path)
    (found["/v"] / "out").symlink_to(planted)
    inner = container("p", volumeMounts=[MOUNT | {"subPath": "out"}])
    with pytest.raises(StartError, match="failed to mount /out of a volume at /data"):
        await pod_files.mount(tree, inner, References(), tmp_path)
    tree["spec"]["containers"][0]["volumeMounts"][0]["subPath"] = "out"
    files = await pod_files.file_system(tree, tree["spec"]["containers"][0], restarts=1)
    seen = files.read("/data/passwd") if files.exists("/data/passwd") else b""
    assert seen != PASSWORDS


async def test_contents_of_a_claim_outlive_the_pod_and_end_with_the_volume(tmp_path):
    kept = Kept()
    tree, pod_files = pod_with_process(CLAIM), shared_files(kept)
    found = await pod_files.mount(tree, PROCESS, BOUND, tmp_path)
    (found["/v"] / "f").write_text("x")
    await pod_files.note_changes(tree)
    assert kept.noted == [("volume", "pv-1", "pv")]
    await pod_files.note_changes(tree)
    assert len(kept.noted) == 1
    pod_files.drop_files(tree["metadata"]["uid"])
    other = pod(container("c", volumeMounts=[MOUNT]), volumes=CLAIM)
    files = await pod_files.file_system(other, other["spec"]["containers"][0], references=BOUND)
    assert files.read("/data/f") == b"x"
    pod_files.drop(("volume", "pv-1", "pv"))
    await pod_files.removals()
    assert not found["/v"].exists()


async def test_contents_are_kept_when_their_folder_is_removed(tmp_path):
    kept = Kept()
    tree, pod_files = pod_with_process(), shared_files(kept)
    found = await pod_files.mount(tree, PROCESS, References(), tmp_path)
    (found["/v"] / "f").write_text("x")
    with (found["/v"] / "huge").open("wb") as file:
        file.truncate(1 << 30)
    await pod_files.release()
    shutil.rmtree(tmp_path)
    volume = ("pod", tree["metadata"]["uid"], "v")
    contents = await pod_files.encoded(volume)
    assert [*decode(contents.data).files] == ["/", "/f"]
    assert (contents.left_out, kept.noted) == (("/huge",), [volume])


def test_simulated_container_beside_a_process_runs_in_real_time():
    live = LiveContainers(IMAGES, Records(), lambda _, name: name == "p")
    reads = container("c", "sh", "-c", "cat /data/f", volumeMounts=[MOUNT])
    tree = pod(reads, PROCESS, volumes=VOLUMES)
    assert live.command(tree, reads)
    assert live.shares_with_process(tree, reads)
    assert not LiveContainers(IMAGES, Records()).shares_with_process(tree, reads)


def test_pod_without_processes_has_its_other_containers():
    tree = pod_with_process()
    assert LiveContainers(IMAGES, Records()).without_processes(tree) is tree
    live = LiveContainers(IMAGES, Records(), lambda _, name: name == "p")
    assert [each["name"] for each in live.without_processes(tree)["spec"]["containers"]] == ["c"]
