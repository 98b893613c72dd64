"""The pod that an operator stands for while it runs outside of the cluster: it has the variables and the files of the container there.

The files are at their paths, such as those of the service account, in a mount namespace of the operator's own. They are those of the
time when the pod was read. Volumes that are not made of API objects are empty folders, anew at each start.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from mockube.apimachinery import labels, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import CONFIG_MAPS, NODES, PODS, SECRETS
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.component_base.temporary_folder import temporary_folder
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.volumes import referenced_names, token_requests
from mockube.container_runtime.process import folders
from mockube.container_runtime.process.command import Identity
from mockube.container_runtime.process.mount_namespace import Mounts
from mockube.failure import Failure
from mockube.kubelet.references import load_objects, load_services

from .process import command_in_namespaces

INSTANCES: Final = 2
"""How many of an operator run at the same time at most: each stands for another pod."""
_POLL_SECONDS: Final = 0.05
_AS_THIS_PROCESS: Final = Identity()
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


class UnsupportedPod(Failure):
    """A process cannot have the volumes of a pod."""


class OperatorPod(Struct, frozen=True, kw_only=True):
    """A pod, one of its containers, and the objects that it refers to."""

    pod: ReadOnlyTree
    container: ReadOnlyTree
    references: References
    folder: Path
    """Where the files of each start are."""
    time: datetime

    def environment(self, server: str) -> Mapping[str, str]:
        """Return the variables of the container. The API server is at a URL, and PATH and HOME are those of this machine."""
        image = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        variables = environment_of(self.pod, self.container, self.references, image)
        address = urlsplit(server)
        return {**variables, _HOST: str(address.hostname), _PORT: str(address.port)}

    def mounts(self, paths: Iterable[Path]) -> Mounts:
        """Write the files of a start, and return its mounts. Paths are what it needs of this machine's /tmp."""
        base = Path(mkdtemp(dir=self.folder))
        sources = folders.Sources(self.time, {}, {})
        mounts = folders.make_root(base, self.pod, self.container, self.references, _AS_THIS_PROCESS, sources)
        return folders.add_programs(mounts, [Path(sys.prefix), Path.cwd(), *paths])


def paths_of_command(command: Sequence[str]) -> Sequence[Path]:
    """Return the program and those arguments of a command that are paths on this machine."""
    program = shutil.which(command[0])
    paths = [Path(each).absolute() for each in command if os.sep in each]
    return [*([Path(program).absolute()] if program else []), *(each for each in paths if each.exists())]


@cache
def can_have_mounts() -> bool:
    """Return whether this machine allows a process mounts of its own: its system, its kernel or a sandbox may forbid them."""
    if sys.platform != "linux":
        return False
    with temporary_folder("mockube-mounts-") as folder:
        mounts = folders.add_programs(Mounts(root=str(folder)), [Path(sys.prefix), Path.cwd()])
        done = subprocess.run(  # noqa: S603 - it is this Python
            command_in_namespaces([sys.executable, "-I", "-S", "-c", ""], mounts),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    return not done.returncode


async def pods_of(
    client: Client, workload: ReadOnlyTree, number: int, clock: Clock, seconds: float
) -> Sequence[ReadOnlyTree]:
    """Wait until so many pods of a workload run, and return all by name, those that run first; after some seconds as they are then."""
    matches = labels.from_label_selector(workload["spec"].get("selector")).matches
    deadline = clock.monotonic() + seconds
    while True:
        listed = await client.list(PODS, meta.namespace(workload))
        own = [pod for pod in listed.items if matches(meta.labels(pod)) and not meta.is_deleting(pod)]
        if sum(map(runs, own)) >= number or clock.monotonic() >= deadline:
            return sorted(own, key=lambda pod: (not runs(pod), meta.name(pod)))
        await clock.sleep(_POLL_SECONDS)


def runs(pod: ReadOnlyTree) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Running")


async def read_operator_pod(
    client: Client, pod: ReadOnlyTree, token: str, folder: Path, time: datetime
) -> OperatorPod:
    """Read what the first container of a pod refers to; what does not exist is left out. The token is that of each of its volumes."""
    container: ReadOnlyTree = pod["spec"]["containers"][0]
    if problem := folders.volume_problem(pod, container):
        raise UnsupportedPod(f"pod {meta.name(pod)}: {problem}")
    maps, secrets = referenced_names(pod, container)
    namespace = meta.namespace(pod)
    references = References(
        config_maps=await load_objects(client, CONFIG_MAPS, namespace, maps),
        secrets=await load_objects(client, SECRETS, namespace, secrets),
        services=await load_services(
            client, namespace, has_links=pod["spec"].get("enableServiceLinks") is not False
        ),
        tokens=dict.fromkeys(token_requests(pod, container), token),
        allocatable=await _allocatable(client, pod["spec"].get("nodeName") or ""),
    )
    return OperatorPod(pod=pod, container=container, references=references, folder=folder, time=time)


async def _allocatable(client: Client, node: str) -> Mapping[str, Any]:
    """Return the allocatable resources of a node; none if the pod has no node, or one that is gone."""
    found = await load_objects(client, NODES, "", {node} - {""})
    return (found.get(node, {}).get("status") or {}).get("allocatable") or {}
