"""The command, environment, folder and user of a container's process. Pure, apart from the search for the program."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.capabilities import capability_bits, gains_no_privileges
from mockube.container_runtime.config.environment import (
    References,
    environment_of,
    hostname_of,
    security_context,
)
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.start_errors import (
    StartError,
    is_a_directory,
    no_such_file,
    not_executable,
    not_in_path,
)

from .images import LocalImage
from .local_ports import PORT_VARIABLE
from .mount_namespace import Mounts
from .namespaced_process import KINDS

ROOT_VARIABLE: Final = "MOCKUBE_ROOT"
POD_VARIABLE: Final = "MOCKUBE_POD_UID"
"""The variable by which a process is known as one of a pod, also in another session."""
KUBECONFIG: Final = "KUBECONFIG"


class Identity(Struct, frozen=True, kw_only=True):
    """The user and the groups of a process; None for the user of this process."""

    user: int | None = None
    groups: Sequence[int] = ()
    """The primary group and the others; empty for those of this process."""


class CommandSpec(Struct, frozen=True, kw_only=True):
    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    identity: Identity
    mounts: Mounts | None = None
    """The mounts in a namespace of the container's own; None without one."""
    network: Sequence[int] = ()
    """The open files of the namespaces that give it the pod's network."""
    hostname: str = ""
    """The host name that it has with a network of its own."""
    has_own_processes: bool = False
    """It is process 1 of a namespace of processes."""
    joined: int = 0
    """The process whose namespaces it enters; 0 for none."""
    joined_kinds: tuple[str, ...] = ()
    is_command: bool = False
    """It is a command in a container, whose mount namespace it enters."""
    root: str = ""
    """The root of the container, for such a command."""
    capabilities: int = -1
    """The bits of the capabilities that it may have, if this process is root; all for -1."""
    gains_nothing: bool = False
    """No program that it executes gives it more rights."""
    memory_group: str = ""
    """The file by which it enters the cgroup that limits its memory; "" for none."""


class LocalEnvironment(Struct, frozen=True, kw_only=True):
    """The folder, ports and API server of a container on this machine."""

    root: Path
    """The container's folder, as the process sees it: / in a mount namespace."""
    folder: Path
    """The container's folder on this machine."""
    mounts: Mounts | None
    ports: Mapping[int, int]
    server: str
    """The URL of the API server."""
    kubeconfig: Path | None
    """The path of a kubeconfig for the container's clients; None if there is none."""
    network: Sequence[int] = ()
    """The open files of the namespaces that give it the pod's network."""


def command_spec(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    image: LocalImage,
    references: References,
    local_environment: LocalEnvironment,
) -> CommandSpec:
    machine, root, ports = os.environ, local_environment.root, local_environment.ports
    mounts = local_environment.mounts
    base = {
        "PATH": machine.get("PATH") or os.defpath,
        "HOSTNAME": hostname_of(pod),
        "HOME": str(root),
        "TMPDIR": str(root / "tmp"),
        ROOT_VARIABLE: str(root),
        POD_VARIABLE: meta.uid(pod),
        **{f"{PORT_VARIABLE}{port}": str(local) for port, local in ports.items()},
        **({KUBECONFIG: str(local_environment.kubeconfig)} if local_environment.kubeconfig else {}),
    }
    image_variables = dict(
        zip(image.env, expand_references(list(image.env.values()), {**machine, **base}), strict=True)
    )
    environment = environment_of(
        pod, container, _with_server(references, local_environment.server), {**base, **image_variables}
    )
    own = container.get("command") or ()
    command = image.command or own or image.entrypoint
    # As of an image, whose CMD does not follow the command of a pod.
    arguments = container.get("args") or (() if own and image.entrypoint else image.args)
    argv = expand_references([*command, *arguments], environment)
    directory = _directory(container, image, local_environment.folder)
    context = security_context(pod, container)
    return CommandSpec(
        argv=_resolve_program(argv, environment, image.directory or image.folder, mounts),
        environment=environment,
        directory=directory,
        identity=identity_of_process(pod, container, image),
        mounts=mounts,
        network=local_environment.network,
        hostname=hostname_of(pod),
        capabilities=capability_bits(context),
        gains_nothing=gains_no_privileges(context),
    )


def command_beside(process: int, spec: CommandSpec) -> CommandSpec:
    """Return the command of a container as one that joins its process, if this is in a namespace of processes."""
    if not (spec.has_own_processes or spec.joined):
        return spec
    return replace(
        spec,
        joined=process,
        joined_kinds=KINDS,
        is_command=True,
        has_own_processes=False,
        network=(),
        mounts=None,
        root="" if spec.mounts is None else spec.mounts.root,
    )


def hidden_paths(image: LocalImage, mounts: Mounts) -> list[str]:
    """Return the paths of this machine that the command needs and that a mount would hide."""
    program = image.command[0] if image.command else ""
    folders = [str((image.directory or image.folder).absolute())]
    return [path for path in (*folders, program) if mounts.source_of(path) is not None]


def program_paths(image: LocalImage) -> list[Path]:
    """Return the paths of this machine at which programs are looked for, and the folder in which the command runs."""
    programs = (*image.command[:1], *image.entrypoint[:1])
    search_paths = (os.environ.get("PATH", ""), image.env.get("PATH", ""))
    folders = (folder for text in search_paths for folder in text.split(os.pathsep))
    paths = (image.folder, *filter(None, [image.directory]), *map(Path, (*programs, *folders)))
    return [path if path.is_absolute() else (image.folder / path).absolute() for path in paths]


def service_url(references: References, server: str) -> str:
    """Return the URL of the API server's Service, in place of that of the server itself."""
    service = next(filter(_is_server, references.services), None)
    spec = service["spec"] if service is not None else {}
    address = spec.get("clusterIP") or "kubernetes.default.svc"
    port = next((port["port"] for port in spec.get("ports") or ()), 443)
    host = f"[{address}]" if ":" in address else address
    return f"{urlsplit(server).scheme}://{host}:{port}"


def _with_server(references: References, server: str) -> References:
    """Replace the address in the API server's Service by the real address."""
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


def _resolve_program(
    argv: Sequence[str], environment: Mapping[str, str], folder: Path, mounts: Mounts | None
) -> Sequence[str]:
    """Replace the program by its full path."""
    if not argv:
        raise StartError("no command specified")
    return [find_program(argv[0], environment, folder, mounts), *argv[1:]]


def find_program(
    name: str, environment: Mapping[str, str], folder: Path, mounts: Mounts | None = None
) -> str:
    """Return the full path of a program; a program in a volume has the path that the container sees."""
    if mounts is not None and (source := mounts.source_of(name)) is not None:
        if Path(source).is_dir():
            raise StartError(is_a_directory(name))
        if not os.access(source, os.X_OK):
            raise StartError(not_executable(name) if Path(source).exists() else no_such_file(name))
        return name
    if "/" not in name and mounts is not None:
        for directory in (environment.get("PATH") or "").split(os.pathsep):
            source = mounts.source_of(f"{directory}/{name}")
            if source is not None and Path(source).is_file() and os.access(source, os.X_OK):
                return f"{directory}/{name}"
    path = str(folder / name) if "/" in name else name
    program = shutil.which(path, path=environment.get("PATH"))
    if program is None:
        raise StartError(no_such_file(name) if "/" in name else not_in_path(name))
    return program


def identity_of_process(pod: ReadOnlyTree, container: ReadOnlyTree, image: LocalImage) -> Identity:
    """Return the user and the groups of the pod, or else of the image, if this process is root; otherwise those of this process."""
    context = security_context(pod, container)
    user, group = context.get("runAsUser"), context.get("runAsGroup")
    user, group = (image.user, image.group if group is None else group) if user is None else (user, group)
    if os.geteuid() != 0 or user is None is group:
        return Identity()
    others = [context.get("fsGroup"), *(context.get("supplementalGroups") or ())]
    primary = next(number for number in (group, user, 0) if number is not None)
    return Identity(user=user, groups=(primary, *(number for number in others if number is not None)))
