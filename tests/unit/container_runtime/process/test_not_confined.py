"""What processes of containers do not confine: the table of docs/security.md. A row that is confined one day fails here."""

import os
import resource
import socket
import sys
from pathlib import Path

import pytest

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.process.command import LocalEnvironment, command_spec
from mockube.container_runtime.process.images import LocalImage
from mockube.container_runtime.process.local_process import start_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
HARDENED: ReadOnlyTree = {
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
    "appArmorProfile": {"type": "RuntimeDefault"},
}


async def output(folder, *argv, **limits):
    """Return the output of a command of a container whose pod confines it as much as it can."""
    container = {
        "name": "c",
        "command": [*argv],
        "securityContext": HARDENED,
        "resources": {"limits": limits},
    }
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": [container]}}
    place = LocalEnvironment(
        root=folder, folder=folder, mounts=None, ports={}, server="http://localhost:1", kubeconfig=None
    )
    process = await start_process(
        command_spec(pod, container, LocalImage(folder=folder), References(), place)
    )
    try:
        assert await process.wait() == 0
        return (await process.outputs[1].read()).decode()
    finally:
        await process.end()


def namespace(kind):
    return Path(f"/proc/self/ns/{kind}").readlink()


def own_filter():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line for line in lines if line.startswith("Seccomp:"))


@pytest.mark.thorough
async def test_process_reads_files_of_the_machine(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("of the machine")
    inside = tmp_path / "inside"
    inside.mkdir()
    assert await output(inside, "cat", str(outside)) == "of the machine"
    await output(inside, "touch", str(tmp_path / "written"))
    assert "written" in os.listdir(tmp_path)  # noqa: PTH208 - a name alone


@pytest.mark.thorough
async def test_process_has_no_filter_of_system_calls(tmp_path):
    assert await output(tmp_path, "grep", "^Seccomp:", "/proc/self/status") == f"{own_filter()}\n"


@pytest.mark.thorough
async def test_process_has_the_limits_of_the_manager(tmp_path):
    cpus = f"{len(os.sched_getaffinity(0))}\n"
    assert await output(tmp_path, "nproc", cpu="100m", **{"ephemeral-storage": "1Mi"}) == cpus
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    found = await output(tmp_path, sys.executable, "-c", "import resource; print(resource.getrlimit(6)[0])")
    assert int(found) == processes


@pytest.mark.thorough
async def test_process_has_the_network_of_the_machine(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = (
            f"import socket; socket.create_connection({server.getsockname()!r}).close(); print('connected')"
        )
        assert await output(tmp_path, sys.executable, "-c", script) == "connected\n"


@pytest.mark.thorough
async def test_user_is_that_of_the_machine(tmp_path):
    assert await output(tmp_path, "id", "-u") == f"{os.getuid()}\n"
    assert await output(tmp_path, "readlink", "/proc/self/ns/user") == f"{namespace('user')}\n"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["ipc", "time", "cgroup"])
async def test_process_shares_ipc_and_time_of_the_machine(tmp_path, kind):
    assert await output(tmp_path, "readlink", f"/proc/self/ns/{kind}") == f"{namespace(kind)}\n"
