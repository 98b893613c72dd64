"""Kubernetes' own control plane with kwok, on the same machine.

MOCKUBE_REAL_KUBERNETES names the folder of its components, as `python -m tools.minors build` makes them. Go builds kwok.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson

from tests.support.processes import real_kubernetes
from tests.support.processes.go_programs import USUAL_PLACE
from tests.support.processes.real_kubernetes import RealApiServer, RealManager, RealScheduler
from tests.support.stores.etcd_server import QUICK, EtcdServer

from .client import Client
from .processes import ControlPlane, require_running, running, wait_until

KWOK, KWOK_VERSION = "sigs.k8s.io/kwok", "v0.8.0"
STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
FAST = ("--kube-api-qps=1000", "--kube-api-burst=1000")
"""The defaults, 20 to 50 requests a second, would be what is measured."""


def build_kwok(folder: Path) -> list[str]:
    """Build kwok in a folder, which Go's cache makes quick, and return its command with the stages of fast nodes and pods."""
    real_kubernetes.require_folder()
    go = shutil.which("go") or USUAL_PLACE
    if not Path(go).exists():
        raise SystemExit("Go is needed to build kwok")
    environment = {**os.environ, "GOBIN": str(folder)}
    subprocess.run([go, "install", f"{KWOK}/cmd/kwok@{KWOK_VERSION}"], env=environment, check=True)
    downloaded = subprocess.run(
        [go, "mod", "download", "-json", f"{KWOK}@{KWOK_VERSION}"], capture_output=True, check=True
    )
    module = Path(orjson.loads(downloaded.stdout)["Dir"])
    files = [
        file
        for stage in STAGES
        for file in sorted((module / "kustomize/stage" / stage).glob("*.yaml"))
        if file.name != "kustomization.yaml"
    ]
    return [str(folder / "kwok"), *(f"--config={file}" for file in files)]


@contextmanager
def kubernetes(kwok_command: Sequence[str], nodes: int, folder: Path) -> Iterator[ControlPlane]:
    """Run etcd without waiting for the disk, the components and kwok; yield when the nodes exist."""
    with ExitStack() as stack:
        etcd = stack.enter_context(EtcdServer(options=QUICK))
        server = stack.enter_context(
            RealApiServer(folder, etcd, flags=("--audit-log-path=", "--audit-policy-file="))
        )
        client = Client(server.url, "admin")
        wait_until(client.is_ready, "kube-apiserver")
        admin = real_kubernetes.write_kubeconfig(folder / "admin", server.url, server.authority, "admin")
        manager_folder = folder / "manager"
        manager_folder.mkdir()
        manager = stack.enter_context(RealManager(manager_folder, admin, FAST))
        scheduler = stack.enter_context(RealScheduler(admin, *FAST))
        flags = (
            f"--kubeconfig={admin}",
            "--manage-all-nodes",
            "--cidr=10.128.0.0/9",
            "--node-lease-duration-seconds=40",
        )
        kwok = stack.enter_context(running(*kwok_command, *flags, folder=folder))
        for number in range(1, nodes + 1):
            client.call("POST", "/api/v1/nodes", _node(f"node-{number}"))
        pids = {
            "etcd": etcd.pid,
            "server": server.pid,
            "manager": manager.pid,
            "scheduler": scheduler.pid,
            "kwok": kwok.pid,
        }
        require_running(kwok, folder)
        yield ControlPlane(client, pids)


def _node(name: str) -> dict[str, object]:
    capacity = {"cpu": "32", "memory": "256Gi", "pods": "1100"}
    labels = {"kubernetes.io/hostname": name}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
