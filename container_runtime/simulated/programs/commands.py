"""The runs of a container: the run that a client requests, and the command of a run. Pure."""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from math import inf
from typing import Final

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import has_default_command, has_open_input, name_unknown
from mockube.container_runtime.config.environment import References, environment_of, hostname_of
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.config.volumes import API_VOLUMES, volume_kind
from mockube.container_runtime.images.programs import programs_of_image
from mockube.container_runtime.images.table import behavior_of
from mockube.container_runtime.pod_script import PREFIX, Script, script_of
from mockube.container_runtime.simulated.files import mounts
from mockube.container_runtime.simulated.files.users import group_names, identity_of, user_names
from mockube.container_runtime.simulated.shell.filesystem import FileSystem
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.invoking import NOT_FOUND
from mockube.container_runtime.simulated.shell.network_programs.programs import PROGRAMS as NETWORK_PROGRAMS
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
from .lasting_files import has_lasting_volume, has_small_disk, may_fill_disk, uses_lasting_files
from .object_values import is_file_of_object, uses_objects
from .requirements import unmet_requirement
from .server_start import failed_start, written_paths

_NETWORK_PROGRAM: Final = re.compile(
    rf"(?<![\w.-])(?:{'|'.join(sorted({*NETWORK_PROGRAMS} - {'host'}))})(?![\w.-])|/dev/(?:tcp|udp)/"
)
"""The name of a program that uses the network, in a command or a script; `host` is more often an ordinary word."""
_RUN_ANNOTATION: Final = f"{PREFIX}run"
_TIMED: Final = ("readinessProbe", "livenessProbe", "startupProbe", "lifecycle")


def host_of(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
    started: datetime,
    *,
    files: FileSystem | None = None,
) -> Host:
    """Return the host in which a container's command runs; without `files`, only the files of mounts are known."""
    user, group, others = identity_of(pod, container)
    script = script_of(meta.annotations(pod))
    return Host(
        name=hostname_of(pod),
        user=user,
        group=group,
        other_groups=others,
        cpus=max(_amount(references, "cpu"), 1),
        memory_bytes=_amount(references, "memory") or DEFAULT_MEMORY,
        user_names=user_names(container),
        group_names=group_names(container),
        address=(pod.get("status") or {}).get("podIP") or "",
        files=files or mounts.file_system_of(pod, container, references, is_partial=True),
        now=lambda: started,
        is_strict=not script.fails_unknown_programs(default=references.fails_unknown_programs),
        programs=PROGRAMS,
        installed=programs_of_image(container.get("image") or ""),
        has_open_input=has_open_input(container),
        has_terminal=bool(container.get("tty")),
    )


def _amount(references: References, resource: str) -> int:
    """Return how much of a resource the node has; 0 if that is unknown."""
    try:
        return quantity.from_json(references.allocatable.get(resource, "0")).scaled_value(0)
    except quantity.QuantityError:
        return 0


def interactive_command(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that reads input from clients; empty if the command is not interpreted.

    A container with a terminal and without a command runs a shell.
    """
    if not container.get("stdin") or script_of(meta.annotations(pod)).command(container["name"]) is not None:
        return ()
    argv = program.command_of(container) or (("sh",) if container.get("tty") else ())
    return argv if argv and argv[0].rpartition("/")[2] in PROGRAMS else ()


def live_command(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that runs in real time, because its results cannot be computed in advance.

    It reads input from clients, uses the network or files that outlive the pod, or ends as the values of API objects demand. Empty if the command is
    interpreted at once, or not at all.
    """
    argv = (
        interactive_command(pod, container)
        or _network_command(pod, container)
        or _command_with_objects(pod, container)
        or _command_with_storage(pod, container)
    )
    return argv if _can_start(pod, container, argv) else ()


def interpreted_command(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container if it is interpreted, or else nothing."""
    script = script_of(meta.annotations(pod))
    argv = _main_argv(container, script)
    return argv if _is_interpreted(argv, script) and _can_start(pod, container, argv) else ()


def _can_start(pod: ReadOnlyTree, container: ReadOnlyTree, argv: tuple[str, ...]) -> bool:
    """Return whether a container has a command, and its image the program."""
    has_script = script_of(meta.annotations(pod)).command(container["name"]) is not None
    return bool(argv) and (has_script or not program.start_problem_of(container))


def is_repeatable(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether a second run of the container's command does the same, given the same API objects."""
    return not (
        interactive_command(pod, container)
        or _network_command(pod, container)
        or _command_with_storage(pod, container)
    )


def _network_command(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that uses the network, or files of an init container that does.

    Annotations that script the runs say what the container does over time, and exclude it.
    """
    if not _may_use_network(pod):
        return ()
    script = script_of(meta.annotations(pod))
    argv = _main_argv(container, script)
    if not _is_interpreted(argv, script):
        return ()
    if mentions_network(argv) or _reads_files_of_network(pod, container):
        return argv
    return ()


def _command_with_objects(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that runs once and whose end depends on API objects.

    One that is restarted counts as a service where its end depends on them, see `program_of_run`.
    """
    if not runs_once(pod, container) or any(field in container for field in _TIMED):
        return ()
    script = script_of(meta.annotations(pod))
    argv = _main_argv(container, script)
    is_script = is_file_of_object(pod, container, argv) and not script.times_runs
    return argv if (_is_interpreted(argv, script) or is_script) and depends_on_objects(pod, container) else ()


def _command_with_storage(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that uses files of claims or of its node, or of an init container that does, or that may
    fill a small disk.
    """
    is_small = has_small_disk(pod)
    if not is_small and not has_lasting_volume(pod):
        return ()
    script = script_of(meta.annotations(pod))
    argv = _main_argv(container, script)
    if not _is_interpreted(argv, script):
        return ()
    if is_small and may_fill_disk(argv):
        return argv
    if uses_lasting_files(pod, container, argv) or any(
        uses_lasting_files(pod, other, _main_argv(other, script))
        for other in _earlier_writers(pod, container)
    ):
        return argv
    return ()


def _is_interpreted(argv: tuple[str, ...], script: Script) -> bool:
    return bool(argv) and argv[0].rpartition("/")[2] in PROGRAMS and not script.times_runs


def runs_once(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether a container is done after a success: an init container, or one of a pod that ends."""
    spec = pod["spec"]
    if container.get("restartPolicy") == "Always":
        return False
    is_main = any(other["name"] == container["name"] for other in spec["containers"])
    return not is_main or spec.get("restartPolicy") in ("Never", "OnFailure")


def depends_on_objects(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether what a container's command does depends on API objects, also by the files of an init container."""
    script = script_of(meta.annotations(pod))
    if uses_objects(pod, container, _main_argv(container, script)):
        return True
    return any(
        uses_objects(pod, other, _main_argv(other, script)) for other in _earlier_writers(pod, container)
    )


def _earlier_writers(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the init containers that run earlier and share a volume with a container."""
    volumes = {mount["name"] for mount in container.get("volumeMounts") or ()} - _api_volumes(pod)
    for other in pod["spec"].get("initContainers") or () if volumes else ():
        if other["name"] == container["name"]:
            return
        if any(mount["name"] in volumes for mount in other.get("volumeMounts") or ()):
            yield other


def _api_volumes(pod: ReadOnlyTree) -> set[str]:
    return {
        volume["name"] for volume in pod["spec"].get("volumes") or () if volume_kind(volume) in API_VOLUMES
    }


def _main_argv(container: ReadOnlyTree, script: Script) -> tuple[str, ...]:
    text = script.command(container["name"])
    return ("sh", "-c", text) if text is not None else program.command_of(container)


def may_run_live(pod: ReadOnlyTree) -> bool:
    """Return whether a command of the pod may run in real time."""
    if _may_use_network(pod):
        return True
    has_storage = has_small_disk(pod) or has_lasting_volume(pod)
    return any(
        container.get("stdin")
        or _command_with_objects(pod, container)
        or (has_storage and _command_with_storage(pod, container))
        for container in every_container(pod["spec"])
    )


def _may_use_network(pod: ReadOnlyTree) -> bool:
    """Return whether a command of the pod may use the network: it names a program that does."""
    return any(
        (container.get("command") or container.get("args"))
        and mentions_network(program.command_of(container))
        for container in every_container(pod["spec"])
    ) or any(
        key.startswith(_RUN_ANNOTATION) and mentions_network((text,))
        for key, text in meta.annotations(pod).items()
    )


@lru_cache(maxsize=4096)
def mentions_network(argv: tuple[str, ...]) -> bool:
    """Return whether a command names a program that uses the network."""
    return any(_NETWORK_PROGRAM.search(argument) for argument in argv)


def _reads_files_of_network(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether an earlier init container that uses the network shares a volume with the container."""
    script = script_of(meta.annotations(pod))
    return any(mentions_network(_main_argv(other, script)) for other in _earlier_writers(pod, container))


def main_command(pod: ReadOnlyTree, container: ReadOnlyTree, references: References, host: Host) -> Run:
    """Run the container's command, or the script in an annotation of its pod; raise `UnknownProgram` without one."""
    environment = environment_of(pod, container, references)
    argv = _main_argv(container, script_of(meta.annotations(pod)))
    if not argv:
        raise UnknownProgram(f"the image {container.get('image')}")
    if script_of(meta.annotations(pod)).command(container["name"]) is not None:
        host.installed = None  # The script stands for the program of the image, which need not have a shell.
    directory = container.get("workingDir") or "/"
    return (yield from run_command(host, expand_references(argv, environment), environment, directory))


def main_process(pod: ReadOnlyTree, container: ReadOnlyTree, references: References, host: Host) -> Run:
    """Run the container's command; one that is not simulated succeeds with a line that says so.

    A known image without a command is a server, which runs until it is stopped, or ends at once.
    """
    image = behavior_of(container)
    has_script = script_of(meta.annotations(pod)).command(container["name"]) is not None
    requirement = None if has_script else unmet_requirement(pod, container, references)
    if requirement is not None:
        yield Output(2, "".join(f"{line}\n" for line in requirement.logs).encode())
        return requirement.exit_code
    failed = None if has_script else failed_start(host.files, written_paths(container))
    if failed is not None:
        yield Output(2, "".join(f"{line}\n" for line in failed.lines).encode())
        return failed.exit_code
    if image is not None and has_default_command(container) and not has_script:
        default = program.default_run(container)
        is_server = (image.logs or image.ports) and not program.command_of(container)
        if default is not None or is_server:
            yield Output(1, "".join(f"{line}\n" for line in image.logs).encode())
        if default is not None:
            return default.exit_code
        if is_server:
            yield Sleep(inf)
    try:
        return (yield from main_command(pod, container, references, host))
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
    return f"mockube: container {container['name']} is simulated: {reason}\n".encode()
