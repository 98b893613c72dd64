"""The machine of a node as its programs see it: files, processes, users, memory. Pure."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import STOPPED_UNITS
from mockube.container_runtime.config.environment import known_environment
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.node_processes import CONTAINERD_PID, KUBELET_PID, container_processes
from mockube.container_runtime.simulated.files.users import identity_of
from mockube.container_runtime.simulated.programs.other_processes import first_argv
from mockube.container_runtime.simulated.shell.invoking import DEFAULT_PATH
from mockube.container_runtime.simulated.shell.process import Host, OtherProcess, size_of
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.programs.installed_programs import (
    NODE_GROUP,
    InstalledPrograms,
    LayeredPrograms,
)
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

from .installed_programs import node_programs
from .root_files import address_of, is_control_plane
from .services import update_logs

_PROGRAMS: Final = LayeredPrograms(InstalledPrograms(NODE_GROUP), PROGRAMS)
_NAMES: Final = {0: "root", 65534: "nobody"}
KUBELET_ARGV: Final = (
    "/usr/bin/kubelet",
    "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
    "--kubeconfig=/etc/kubernetes/kubelet.conf",
    "--config=/var/lib/kubelet/config.yaml",
    "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
)
_SYSTEM: Final = (
    (1, "/lib/systemd/systemd"),
    (210, "/lib/systemd/systemd-journald"),
    (CONTAINERD_PID, "/usr/bin/containerd"),
    (KUBELET_PID, " ".join(KUBELET_ARGV)),
)
"""The processes of a node besides those of containers."""
ADMIN: Final = "/etc/kubernetes/admin.conf"


def node_host(
    images: ImageTable,
    node: ReadOnlyTree,
    pods: Sequence[ReadOnlyTree],
    files: FileSystem,
    now: Callable[[], datetime],
) -> Host:
    """Return the machine of a node."""
    environment = {"PATH": DEFAULT_PATH, "HOME": "/root", "USER": "root", "SHELL": "/bin/bash"}
    if files.exists(ADMIN):
        environment["KUBECONFIG"] = ADMIN
    name, capacity = meta.name(node), (node.get("status") or {}).get("capacity") or {}
    processes = tuple(_processes(images, node, pods))
    return Host(
        hostname=name,
        files=files,
        now=now,
        programs=_PROGRAMS,
        installed=node_programs(is_control_plane=is_control_plane(node)),
        address=address_of(node),
        user_names=_NAMES,
        group_names=_NAMES,
        find_others=lambda: processes,
        find_size=lambda: size_of(capacity),
        prompt=f"root@{name.replace('{', '').replace('}', '')}:{{directory}}# ",
        is_node=True,
        before_program=update_logs,
        environment={**environment, "HOSTNAME": name},
    )


def _processes(
    images: ImageTable, node: ReadOnlyTree, pods: Sequence[ReadOnlyTree]
) -> Iterator[OtherProcess]:
    started = meta.creation_timestamp(node) or datetime.fromtimestamp(0, UTC)
    stopped = meta.annotations(node).get(STOPPED_UNITS, "")
    for pid, command in _SYSTEM:
        if command.partition(" ")[0].rpartition("/")[2] not in stopped:
            yield OtherProcess(pid, tuple(command.split()), 0, started)
    for process in container_processes(pods):
        pod, container = process.pod, process.container
        argv = first_argv(images, pod, container, known_environment(pod, container))
        yield OtherProcess(process.pid, argv, identity_of(images, pod, container).user, process.started)
