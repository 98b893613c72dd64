"""The runs of a container: the run that a client requests, and the command of a run. Pure."""

from datetime import datetime
from math import inf

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import NOT_FOUND, has_default_command, has_open_input
from mockube.container_runtime.config.environment import References, environment_of, hostname_of
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.images.programs import programs_of_image
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.pod_script import Script, name_unknown_of, runs_script, script_of
from mockube.container_runtime.simulated.files import mounts
from mockube.container_runtime.simulated.files.mounts import SERVICE_ACCOUNT_PATH
from mockube.container_runtime.simulated.files.users import group_names, identity_of, user_names
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import (
    Host,
    Output,
    Run,
    Sleep,
    UnknownProgram,
    size_of,
)
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.syntax import ShellSyntaxError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulation_values import FAIL
from mockube.container_runtime.start_errors import NOT_STARTED, StartError

from . import program
from .image_servers import programs_with_servers
from .requirements import unmet_need
from .server_start import failed_by_capabilities, failed_start, written_paths
from .unread_configuration import unread_configuration


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
    return Host(
        hostname=hostname_of(pod),
        pid=program.pid_of(pod, container),
        user=user,
        group=group,
        other_groups=others,
        find_size=lambda: size_of(references.allocatable),
        user_names=user_names(images, container),
        group_names=group_names(images, container),
        address=(pod.get("status") or {}).get("podIP") or "",
        files=files or mounts.file_system_of(images, pod, container, references, is_partial=True),
        now=lambda: started,
        is_strict=images.unknown_programs.of(pod) != FAIL,
        programs=programs_with_servers(images.behavior_of(container), container.get("image") or ""),
        installed=programs_of_image(images, container.get("image") or ""),
        has_open_input=has_open_input(container),
        has_terminal=bool(container.get("tty")),
        image=container.get("image") or "",
    )


def interactive_command(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that reads input from clients; empty if the command is not interpreted.

    A container with a terminal and without a command runs a shell.
    """
    if not container.get("stdin") or runs_script(pod, container):
        return ()
    argv = program.command_of(images, container) or (("sh",) if container.get("tty") else ())
    return argv if argv and argv[0].rpartition("/")[2] in PROGRAMS else ()


def live_command(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that runs on the clock whatever it does: it reads input from clients, or is a server's.

    Empty for any other.
    """
    argv = interactive_command(images, pod, container) or server_command(images, pod, container)
    return argv if _can_start(images, pod, container, argv) else ()


def interpreted_command(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container if it is interpreted, or else nothing."""
    script = script_of(meta.annotations(pod))
    argv = () if script.times_runs else _main_argv(images, container, script)
    return argv if _can_start(images, pod, container, argv) else ()


def _can_start(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, argv: tuple[str, ...]) -> bool:
    """Return whether a container has a command, and its image the program."""
    has_script = runs_script(pod, container)
    return bool(argv) and (has_script or not program.start_problem_of(images, container))


def server_command(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the command of a container that is a server with files which its image does not have alone; empty for any other.

    The server of an image without volumes at its configuration and at its logs does what the table of images says.
    """
    own_mounts, is_given = _own_mounts(container), container.get("command") or container.get("args")
    image, kind = images.behavior_of(container), program.configured_kind(images, container)
    if image is None or kind is None or not (own_mounts or is_given):
        return ()
    script = script_of(meta.annotations(pod))
    if script.command(container["name"]) is not None or script.times_runs:
        return ()
    argv = program.command_of(images, container) or tuple(container.get("args") or ())
    if container.get("command"):
        return argv if kind.has(argv) else ()
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
    return (argv or kind.command) if has_files or argv else ()


def _own_mounts(container: ReadOnlyTree) -> list[ReadOnlyTree]:
    """Return the mounts of a container without that of its ServiceAccount, which nearly every container has."""
    present = container.get("volumeMounts") or ()
    return [mount for mount in present if mount["mountPath"] != SERVICE_ACCOUNT_PATH]


def _main_argv(images: ImageTable, container: ReadOnlyTree, script: Script) -> tuple[str, ...]:
    text = script.command(container["name"])
    return ("sh", "-c", text) if text is not None else program.command_of(images, container)


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
    # A script stands for the program of the image, which need not have a shell.
    host.installed = None if runs_script(pod, container) else program.installed_programs(images, container)
    directory = container.get("workingDir") or "/"
    return (yield from run_command(host, expand_references(argv, environment), environment, directory))


def main_process(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References, host: Host
) -> Run:
    """Run the container's command; one that is not simulated succeeds with a line that says so.

    A known image without a command is a server, which runs until it is stopped, or ends at once.
    """
    image = images.behavior_of(container)
    has_script = runs_script(pod, container)
    requirement = None if has_script else unmet_need(images, pod, container, references)
    if requirement is not None:
        yield Output(2, "".join(f"{line}\n" for line in requirement.logs).encode())
        return requirement.exit_code
    failed = None if has_script else failed_start(host.files, written_paths(images, container))
    failed = failed or (
        None if has_script else failed_by_capabilities(images, container, host.files.rights.user)
    )
    if failed is not None:
        yield Output(2, "".join(f"{line}\n" for line in failed.lines).encode())
        return failed.exit_code
    is_server = image is not None and not has_script and program.serves(images, container)
    if image is not None and not has_script and (is_server or has_default_command(container)):
        default = program.default_run(images, container)
        if unread := unread_configuration(images, pod, container):
            yield Output(1, _simulated_line(container, f"{unread} is not read"))
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
    name = name_unknown_of(pod, container, str(error))
    reason = (
        f"{name} does not run" if isinstance(error, UnknownProgram) else f"its script does not run: {error}"
    )
    return _simulated_line(container, reason)


def _simulated_line(container: ReadOnlyTree, reason: str) -> bytes:
    return f"mockube: container {container['name']} is simulated: {reason}\n".encode()
