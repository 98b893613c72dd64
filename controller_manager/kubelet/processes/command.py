"""What is started for a container: its command, environment, folder and user. Pure, but that it looks a program up."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.environment import (
    References,
    environment_of,
    hostname_of,
)
from mockube.controller_manager.kubelet.pod_lifecycle.program import expand_references
from mockube.controller_manager.kubelet.processes.images import LocalImage

ROOT_VARIABLE: Final = "MOCKUBE_ROOT"
PORT_VARIABLE: Final = "MOCKUBE_PORT_"
KUBECONFIG: Final = "KUBECONFIG"


class StartError(Exception):
    """A command cannot be started, in a runtime's words."""


class Identity(Struct, frozen=True, kw_only=True):
    """The user and group of a process; None for those of this one."""

    user: int | None = None
    group: int | None = None


class CommandSpec(Struct, frozen=True, kw_only=True):
    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    identity: Identity


class LocalPlaces(Struct, frozen=True, kw_only=True):
    """Where a container is on this machine."""

    root: Path
    ports: Mapping[int, int]
    server: str
    """Where this API server is."""
    kubeconfig: Path | None
    """A file for clients that look for one."""


def local_ports(container: ReadOnlyTree, image: LocalImage) -> dict[int, int]:
    """Where each port of a container is on this machine; 0 is a free one that is still to be found."""
    declared = [
        port["containerPort"]
        for port in container.get("ports") or ()
        if (port.get("protocol") or "TCP") == "TCP"
    ]
    return {port: port for port in declared} | dict(image.ports)


def command_spec(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    image: LocalImage,
    references: References,
    place: LocalPlaces,
) -> CommandSpec:
    machine, root, ports = os.environ, place.root, place.ports
    base = {
        "PATH": machine.get("PATH") or os.defpath,
        "HOSTNAME": hostname_of(pod),
        "HOME": str(root),
        "TMPDIR": str(root / "tmp"),
        ROOT_VARIABLE: str(root),
        **{f"{PORT_VARIABLE}{port}": str(local) for port, local in ports.items()},
        **({KUBECONFIG: str(place.kubeconfig)} if place.kubeconfig else {}),
    }
    own = dict(zip(image.env, expand_references(list(image.env.values()), {**machine, **base}), strict=True))
    environment = environment_of(pod, container, _with_server(references, place.server), {**base, **own})
    command = image.command or container.get("command") or ()
    arguments = container.get("args") or image.args
    argv = expand_references([*command, *arguments], environment)
    directory = _directory(container, image, root)
    return CommandSpec(
        argv=_resolve(argv, environment, image.directory or image.folder),
        environment=environment,
        directory=directory,
        identity=_identity(pod, container),
    )


def _with_server(references: References, server: str) -> References:
    """Replace the API server's Service address by its real one."""
    url = urlsplit(server)
    port = {"name": "https", "port": url.port or 443, "protocol": "TCP"}
    service = {
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "spec": {"clusterIP": url.hostname, "ports": [port]},
    }
    others = [other for other in references.services if not _is_server(other)]
    return replace(references, services=[service, *others])


def _is_server(service: ReadOnlyTree) -> bool:
    return (meta.namespace(service), meta.name(service)) == ("default", "kubernetes")


def _directory(container: ReadOnlyTree, image: LocalImage, root: Path) -> Path:
    if image.directory is not None:
        return image.directory
    inner = container.get("workingDir")
    return root / os.path.normpath(f"/{inner}").lstrip("/") if inner else image.folder


def _resolve(argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> Sequence[str]:
    """The program by its whole path."""
    if not argv:
        raise StartError("no command specified")
    return [find_program(argv[0], environment, folder), *argv[1:]]


def find_program(name: str, environment: Mapping[str, str], folder: Path) -> str:
    path = str(folder / name) if "/" in name else name
    program = shutil.which(path, path=environment.get("PATH"))
    if program is None:
        missing = "stat" if "/" in name else "exec"
        reason = "no such file or directory" if "/" in name else "executable file not found in $PATH"
        raise StartError(f'error during container init: {missing}: "{name}": {reason}')
    return program


def _identity(pod: ReadOnlyTree, container: ReadOnlyTree) -> Identity:
    """Only root can change the user; otherwise it stays."""
    chosen = _security(pod, container)
    if os.geteuid() != 0:
        return Identity()
    user, group = chosen.get("runAsUser"), chosen.get("runAsGroup")
    return Identity(user=user, group=group if group is not None else user)


def identity_problem(pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Why a container may not run as the user that it would have; "" if it may."""
    chosen = _security(pod, container)
    if not chosen.get("runAsNonRoot") or os.geteuid() != 0:
        return ""
    user = chosen.get("runAsUser")
    container_ref = (
        f'(pod: "{meta.name(pod)}_{meta.namespace(pod)}({meta.uid(pod)})", container: {container["name"]})'
    )
    if user is None:
        return f"container has runAsNonRoot and image will run as root {container_ref}"
    return "" if user else f"container's runAsUser breaks non-root policy {container_ref}"


def _security(pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, Any]:
    return {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}


def numbered_port(value: Any, container: ReadOnlyTree) -> int:
    """The port of a probe or hook, which may be the name of one of the container's; 0 if there is none."""
    if isinstance(value, int):
        return value
    ports: Iterable[ReadOnlyTree] = container.get("ports") or ()
    named = next((port["containerPort"] for port in ports if port.get("name") == value), None)
    return named if named is not None else int(value) if str(value).isdecimal() else 0
