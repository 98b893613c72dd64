"""The runs of a container: the run that a client requests, and the command of a run. Pure."""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from math import inf
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.quantity import scaled_value_or
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import NOT_FOUND, has_default_command, has_open_input, name_unknown
from mockube.container_runtime.config.environment import References, environment_of, hostname_of
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.config.volumes import api_volume_names
from mockube.container_runtime.images.programs import programs_of_image
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.pod_script import PREFIX, Script, script_of
from mockube.container_runtime.simulated.files import mounts
from mockube.container_runtime.simulated.files.mounts import SERVICE_ACCOUNT_PATH
from mockube.container_runtime.simulated.files.users import group_names, identity_of, user_names
from mockube.container_runtime.simulated.shell.filesystem import FileSystem
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.network_programs.programs import PROGRAMS as NETWORK_PROGRAMS
from mockube.container_runtime.simulated.shell.network_programs.servers.registry import (
    PROGRAMS as NETWORK_SERVERS,
)
from mockube.container_runtime.simulated.shell.network_programs.servers.registry import ServerKind, kind_of
from mockube.container_runtime.simulated.shell.process import (
    DEFAULT_MEMORY,
    Host,
    Output,
    Run,
    Sleep,
    UnknownProgram,
)
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.syntax import ShellSyntaxError
from mockube.container_runtime.start_errors import NOT_STARTED, StartError

from . import program
from .lasting_files import (
    has_lasting_volume,
    has_small_disk,
    may_fill_disk,
    may_fill_shared_memory,
    uses_lasting_files,
)
from .object_values import is_file_of_object, uses_objects
from .requirements import unmet_need
from .server_start import failed_by_capabilities, failed_start, written_paths
from .unread_configuration import unread_configuration

_NETWORK_PROGRAM: Final = re.compile(
    rf"(?<![\w.-])(?:{'|'.join(sorted({*NETWORK_PROGRAMS} - {'host', 'ss', *NETWORK_SERVERS}))})(?![\w.-])|/dev/(?:tcp|udp)/|(?<![\w.:-])ss(?=\s+-|$)"
)
"""The name of a program that uses the network, in a command or a script; `host` is more often an ordinary word, `ss` seconds, and `nginx` a name."""
_AGNHOST: Final = ("agnhost", "agnhost-2")
_PYTHON: Final = re.compile(r"(?<![\w.-])python(?:3(?:\.\d+)?)?(?![\w.-])")
_SURROUNDINGS: Final = re.compile(
    r"(?<![\w./-])(?:whoami|id|groups|chown|chgrp|getent|df|mount|free|nproc|top|ps|pgrep|pidof|pkill|killall)(?![\w=./-])"
)
"""The name of a program that shows the users, the disks or the processes of a container."""
_PROCESS: Final = re.compile(r"/proc/(?!1/)[1-9$*\[?]")
"""Matches the folder of a process in /proc."""
_SERVER_PROGRAM: Final = re.compile(rf"(?<![\w.-])(?:{'|'.join(NETWORK_SERVERS)})(?![\w.-])")
_RUN_ANNOTATION: Final = f"{PREFIX}run"


def host_of(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
    started: datetime,
    *,
    files: FileSystem | None = None,
) -> Host:
    """Return the host in which a container's command runs; without `files`, only the files of mounts are known."""
    user, group, others, _ = identity_of(images, pod, container)
    script = script_of(meta.annotations(pod))
    return Host(
        name=hostname_of(pod),
        pid=program.pid_of(pod, container),
        user=user,
        group=group,
        other_groups=others,
        cpus=max(scaled_value_or(references.allocatable.get("cpu"), 0), 1),
        memory_bytes=scaled_value_or(references.allocatable.get("memory"), 0) or DEFAULT_MEMORY,
        user_names=user_names(images, container),
        group_names=group_names(images, container),
        address=(pod.get("status") or {}).get("podIP") or "",
        files=files or mounts.file_system_of(images, pod, container, references, is_partial=True),
        now=lambda: started,
        is_strict=not script.fails_unknown_programs(default=references.fails_unknown_programs),
        programs=PROGRAMS,
        installed=programs_of_image(images, container.get("image") or ""),
        has_open_input=has_open_input(container),
        has_terminal=bool(container.get("tty")),
        image=container.get("image") or "",
    )


def interactive_command(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that reads input from clients; empty if the command is not interpreted.

    A container with a terminal and without a command runs a shell.
    """
    if not container.get("stdin") or script_of(meta.annotations(pod)).command(container["name"]) is not None:
        return ()
    argv = program.command_of(images, container) or (("sh",) if container.get("tty") else ())
    if container.get("tty") and len(argv) == 1 and _PYTHON.search(argv[0]):
        return ()  # its interactive mode is not simulated
    return argv if argv and argv[0].rpartition("/")[2] in PROGRAMS else ()


def live_command(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that runs in real time, because its results cannot be computed in advance.

    It reads input from clients, uses the network or files that outlive the pod, or ends as the values of API objects demand. Empty if the command is
    interpreted at once, or not at all.
    """
    argv = (
        interactive_command(images, pod, container)
        or _network_command(images, pod, container)
        or _command_with_objects(images, pod, container)
        or _command_with_storage(images, pod, container)
        or server_command(images, pod, container)
    )
    return argv if _can_start(images, pod, container, argv) else ()


def shows_surroundings(argv: tuple[str, ...]) -> bool:
    """Return whether a command asks for something of its container that is not computed in advance."""
    return any(_SURROUNDINGS.search(argument) for argument in argv) or reads_processes(argv)


def reads_processes(argv: tuple[str, ...]) -> bool:
    """Return whether a command reads files about processes other than the first one of its namespace."""
    return any(_PROCESS.search(argument) for argument in argv)


def interpreted_command(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container if it is interpreted, or else nothing."""
    script = script_of(meta.annotations(pod))
    argv = _main_argv(images, container, script)
    return argv if _is_interpreted(argv, script) and _can_start(images, pod, container, argv) else ()


def _can_start(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, argv: tuple[str, ...]) -> bool:
    """Return whether a container has a command, and its image the program."""
    has_script = script_of(meta.annotations(pod)).command(container["name"]) is not None
    return bool(argv) and (has_script or not program.start_problem_of(images, container))


def is_repeatable(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether a second run of the container's command does the same, given the same API objects."""
    return not (
        interactive_command(images, pod, container)
        or _network_command(images, pod, container)
        or _command_with_storage(images, pod, container)
        or server_command(images, pod, container)
    )


def server_command(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that starts a server with files which its image does not have alone; empty for any other.

    The server of an image without volumes at its configuration and at its logs does what the table of images says.
    """
    own_mounts, is_given = _own_mounts(container), container.get("command") or container.get("args")
    image, kind = images.behavior_of(container), server_kind(images, container)
    if image is None or kind is None or not (own_mounts or is_given or kind.is_always_read):
        return ()
    script = script_of(meta.annotations(pod))
    if script.command(container["name"]) is not None or script.times_runs:
        return ()
    argv = program.command_of(images, container) or tuple(container.get("args") or ())
    if container.get("command"):
        is_server = any(_SERVER_PROGRAM.search(argument) for argument in argv)
        return argv if is_server and argv[0].rpartition("/")[2] in PROGRAMS else ()
    if argv and argv[0].startswith("-") and image.takes_options:
        argv = (kind.command[0], *argv)
    if argv and argv[0] not in kind.programs:
        return ()
    places = (*image.configuration, *kind.places)
    has_files = any(
        f"{place}/".startswith(f"{path}/") or path.startswith(f"{place}/")
        for mount in own_mounts
        for path in (mount["mountPath"].rstrip("/"),)
        for place in places
    )
    return (argv or kind.command) if has_files or argv or kind.is_always_read else ()


def _own_mounts(container: ReadOnlyTree) -> list[ReadOnlyTree]:
    """Return the mounts of a container without that of its ServiceAccount, which nearly every container has."""
    present = container.get("volumeMounts") or ()
    return [mount for mount in present if mount["mountPath"] != SERVICE_ACCOUNT_PATH]


def server_kind(images: ImageTable, container: ReadOnlyTree) -> ServerKind | None:
    """Return the server of a container's image whose configuration is simulated; None for any other."""
    image = images.behavior_of(container)
    return None if image is None or image.is_guess else kind_of(image)


def _network_command(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that uses the network, or files of an init container that does.

    Annotations that script the runs say what the container does over time, and exclude it.
    """
    if not _may_use_network(images, pod):
        return ()
    script = script_of(meta.annotations(pod))
    argv = _main_argv(images, container, script)
    if not _is_interpreted(argv, script):
        return ()
    if mentions_network(argv) or _reads_files_of_network(images, pod, container):
        return argv
    return ()


def _command_with_objects(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container whose end depends on API objects."""
    script = script_of(meta.annotations(pod))
    argv = _main_argv(images, container, script)
    is_script = is_file_of_object(pod, container, argv) and not script.times_runs
    return (
        argv
        if (_is_interpreted(argv, script) or is_script) and depends_on_objects(images, pod, container)
        else ()
    )


def _command_with_storage(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that uses files of claims or of its node, or of an init container that does, or that may
    fill a small disk.
    """
    script = script_of(meta.annotations(pod))
    argv = _main_argv(images, container, script)
    is_small = has_small_disk(pod) or may_fill_shared_memory(argv)
    if not is_small and not has_lasting_volume(pod):
        return ()
    if not _is_interpreted(argv, script):
        return ()
    if is_small and may_fill_disk(argv):
        return argv
    if uses_lasting_files(pod, container, argv) or any(
        uses_lasting_files(pod, other, _main_argv(images, other, script))
        for other in earlier_writers(pod, container)
    ):
        return argv
    return ()


def _is_interpreted(argv: tuple[str, ...], script: Script) -> bool:
    return bool(argv) and argv[0].rpartition("/")[2] in PROGRAMS and not script.times_runs


def depends_on_objects(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether what a container's command does depends on API objects, also by the files of an init container."""
    script = script_of(meta.annotations(pod))
    if uses_objects(pod, container, _main_argv(images, container, script)):
        return True
    return any(
        uses_objects(pod, other, _main_argv(images, other, script))
        for other in earlier_writers(pod, container)
    )


def earlier_writers(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the init containers that run earlier and share a volume with a container."""
    volumes = {mount["name"] for mount in container.get("volumeMounts") or ()} - api_volume_names(pod)
    for other in pod["spec"].get("initContainers") or () if volumes else ():
        if other["name"] == container["name"]:
            return
        if any(mount["name"] in volumes for mount in other.get("volumeMounts") or ()):
            yield other


def _main_argv(images: ImageTable, container: ReadOnlyTree, script: Script) -> tuple[str, ...]:
    text = script.command(container["name"])
    return ("sh", "-c", text) if text is not None else program.command_of(images, container)


def may_run_live(images: ImageTable, pod: ReadOnlyTree) -> bool:
    """Return whether a command of the pod may run in real time."""
    if _may_use_network(images, pod):
        return True
    has_storage = has_small_disk(pod) or has_lasting_volume(pod)
    return any(
        container.get("stdin")
        or _command_with_objects(images, pod, container)
        or (
            (has_storage or may_fill_shared_memory(program.command_of(images, container)))
            and _command_with_storage(images, pod, container)
        )
        or server_command(images, pod, container)
        for container in every_container(pod["spec"])
    )


def _may_use_network(images: ImageTable, pod: ReadOnlyTree) -> bool:
    """Return whether a command of the pod, or of one of its images, may use the network: it names a program that does."""
    return any(
        _has_command(images, container) and mentions_network(program.command_of(images, container))
        for container in every_container(pod["spec"])
    ) or any(
        key.startswith(_RUN_ANNOTATION) and mentions_network((text,))
        for key, text in meta.annotations(pod).items()
    )


def _has_command(images: ImageTable, container: ReadOnlyTree) -> bool:
    """Return whether a container, or its image, has a command that is known."""
    if container.get("command") or container.get("args"):
        return True
    image = images.behavior_of(container)
    return image is not None and bool(image.entrypoint)


@lru_cache(maxsize=4096)
def mentions_network(argv: tuple[str, ...]) -> bool:
    """Return whether a command names a program that uses the network."""
    return any(_NETWORK_PROGRAM.search(argument) for argument in argv) or _is_client_of_agnhost(argv)


def _is_client_of_agnhost(argv: tuple[str, ...]) -> bool:
    """Return whether a command is one of agnhost that connects to others when it starts."""
    if not argv or argv[0].rpartition("/")[2] not in _AGNHOST:
        return False
    return "connect" in argv[1:2] or any(argument.startswith("--replicaof") for argument in argv)


def _reads_files_of_network(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether an earlier init container that uses the network shares a volume with the container."""
    script = script_of(meta.annotations(pod))
    return any(
        mentions_network(_main_argv(images, other, script)) for other in earlier_writers(pod, container)
    )


def main_command(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References, host: Host
) -> Run:
    """Run the container's command, or the script in an annotation of its pod; raise `UnknownProgram` without one."""
    environment = environment_of(pod, container, references)
    argv = _main_argv(images, container, script_of(meta.annotations(pod))) or server_command(
        images, pod, container
    )
    if not argv:
        raise UnknownProgram(f"the image {container.get('image')}")
    has_script = script_of(meta.annotations(pod)).command(container["name"]) is not None
    if (
        has_script
        or program.script_of_program(images, container, program.argv_of(images, container)) is not None
    ):
        host.installed = None  # The script stands for the program of the image, which need not have a shell.
    directory = container.get("workingDir") or "/"
    return (yield from run_command(host, expand_references(argv, environment), environment, directory))


def main_process(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References, host: Host
) -> Run:
    """Run the container's command; one that is not simulated succeeds with a line that says so.

    A known image without a command is a server, which runs until it is stopped, or ends at once.
    """
    image = images.behavior_of(container)
    has_script = script_of(meta.annotations(pod)).command(container["name"]) is not None
    requirement = None if has_script else unmet_need(images, pod, container, references)
    if requirement is not None:
        yield Output(2, "".join(f"{line}\n" for line in requirement.logs).encode())
        return requirement.exit_code
    failed = None if has_script else failed_start(host.files, written_paths(images, container))
    failed = failed or (None if has_script else failed_by_capabilities(images, container, host.files.user))
    if failed is not None:
        yield Output(2, "".join(f"{line}\n" for line in failed.lines).encode())
        return failed.exit_code
    is_server = image is not None and not has_script and program.serves(images, container)
    if image is not None and not has_script and (is_server or has_default_command(container)):
        default = program.default_run(images, container)
        if path := unread_configuration(images, pod, container):
            yield Output(1, _simulated_line(container, f"the configuration in {path} is not read"))
        elif default is not None or is_server:
            yield Output(1, "".join(f"{line}\n" for line in image.logs).encode())
        if default is not None:
            return default.exit_code
        if is_server:
            yield Sleep(inf)
    try:
        return (yield from main_command(images, pod, container, references, host))
    except StartError:
        return NOT_STARTED
    except (UnknownProgram, ShellSyntaxError, RecursionError) as error:
        yield Output(1, not_simulated_line(pod, container, error))
        return 0 if host.is_strict else NOT_FOUND


def not_simulated_line(pod: ReadOnlyTree, container: ReadOnlyTree, error: Exception) -> bytes:
    has_script = script_of(meta.annotations(pod)).command(container["name"]) is not None
    name = name_unknown(container, str(error), has_script=has_script)
    reason = (
        f"{name} does not run" if isinstance(error, UnknownProgram) else f"its script does not run: {error}"
    )
    return _simulated_line(container, reason)


def _simulated_line(container: ReadOnlyTree, reason: str) -> bytes:
    return f"mockube: container {container['name']} is simulated: {reason}\n".encode()
