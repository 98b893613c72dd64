"""What is known of simulated containers before they run (`Predictions`): what their commands do in the context of their pod. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf
from posixpath import normpath
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import (
    UNKNOWN_TIMELINE,
    RunBehavior,
    StopReaction,
    Timeline,
    has_default_command,
)
from mockube.container_runtime.config.environment import hostname_of, known_environment
from mockube.container_runtime.images.programs import programs_of_image
from mockube.container_runtime.images.table import ImageTable, PortBehavior
from mockube.container_runtime.load import NO_LOAD, RunLoad
from mockube.container_runtime.pod_script import Script, script_of
from mockube.container_runtime.port_probe import REFUSED, PortAnswer, PortProbe
from mockube.container_runtime.simulation_values import FAIL
from mockube.container_runtime.start_errors import NOT_STARTED, message_of_start

from .files.image_places import file_places
from .files.mounts import (
    shared_mount_paths,
    system_files,
    write_protection,
)
from .files.users import group_names, identity_of, user_names
from .programs import handlers, image_load, program, requirements
from .programs import unread_configuration as unread
from .programs.contexts import (
    concurrent_containers,
    context_of,
    full_context,
    knows_default_command,
    knows_image,
    lacks_command,
    outside_mounts,
    unknown_places,
    unknown_program,
)
from .programs.handlers import HandlerCommand, HandlerOutcome
from .programs.mount_conflicts import mount_problem
from .programs.object_values import object_variables
from .programs.other_processes import processes_at_start
from .programs.program import invocation_of, program_of, shared_variables
from .programs.requirements import FindObject
from .servers import probe_answers
from .servers.listeners import listeners_of
from .servers.port_conflicts import end_without_port
from .servers.running_servers import RunningServers
from .shell.outside import HOST_NAME, OutsideAnswer
from .shell.programs import installed_servers
from .shell.vfs.file_entry import FileEntry

_PATHS: Final = re.compile(r"/[\w.+-]+(?:/[\w.+-]+)*")
_TEMPORARY: Final = "/tmp/"  # noqa: S108 - of a simulated container
"""The folder that is empty in an image."""


def image_user(images: ImageTable, container: ReadOnlyTree) -> int | str | None:
    image = images.behavior_of(container)
    return None if image is None else image.user_name or image.user


def unread_configuration(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    return unread.unread_configuration(images, pod, container)


def missing_server(images: ImageTable, container: ReadOnlyTree) -> str:
    image = images.behavior_of(container)
    return "" if image is None else installed_servers.missing_server(image)


def command_of(images: ImageTable, container: ReadOnlyTree) -> tuple[str, ...]:
    return program.command_of(images, container)


def reads_input(images: ImageTable, container: ReadOnlyTree) -> bool:
    image = images.behavior_of(container)
    return image is not None and image.reads_input


def program_of_run(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
) -> Callable[..., RunBehavior | None]:
    """Return a function that returns the container's program; its arguments `restarts` and `started` select the run.

    It returns None for a command that is not simulated.
    """
    return partial(
        program_of,
        images,
        container,
        full_context(images, pod, container, script),
    )


def server_load(images: ImageTable, container: ReadOnlyTree, script: Script) -> RunLoad:
    """Return what the server of a container's image uses without requests; `NO_LOAD` if the container runs another program."""
    is_scripted = script.command(container["name"]) is not None
    return NO_LOAD if is_scripted else image_load.at_rest(images, container)


def end_of_entrypoint(  # noqa: PLR0913 - each argument is a dependency
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    config_map: FindObject,
    secret: FindObject,
    *,
    host_pods: Iterable[ReadOnlyTree] = (),
) -> RunBehavior | None:
    if problem := mount_problem(images, pod, container, config_map, secret):
        return RunBehavior(seconds=0, exit_code=NOT_STARTED, start_error=message_of_start(problem))
    end = requirements.end_of_entrypoint(images, pod, container, script, config_map, secret)
    return end or end_without_port(images, pod, container, host_pods)


def reaction_of_run(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    *,
    seconds: float,
) -> StopReaction:
    context = full_context(images, pod, container, script)
    invocation = invocation_of(images, container, context)
    try:
        return StopReaction() if invocation is None else program.reaction_at(invocation, seconds)
    except OutsideAnswer:
        return StopReaction()


def ignores_term(images: ImageTable, container: ReadOnlyTree) -> bool:
    image = images.behavior_of(container)
    return (
        image is not None
        and image.ignores_term
        and (has_default_command(container) or program.serves(images, container))
    )


def has_program(images: ImageTable, container: ReadOnlyTree, name: str) -> bool:
    """Return whether a container's image certainly has a program."""
    image, short_name = images.behavior_of(container), name.rpartition("/")[2]
    installed = programs_of_image(images, container.get("image") or "")
    is_health_check = image is not None and any(
        command.partition(" ")[0] == short_name for command in image.health
    )
    is_listed = installed is not None and installed.has(short_name) is True
    return is_listed or is_health_check or (image is not None and short_name in image.servers)


def runs_server(images: ImageTable, container: ReadOnlyTree) -> bool:
    image = images.behavior_of(container)
    if image is None or image.is_guess:
        return False
    return program.serves(images, container) or program.starts_configured_server(images, container)


def changes_files(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether the command of a container changes files as far as it is computed, or may do so later."""
    behavior = program_of_run(images, pod, container, script_of(meta.annotations(pod)))()
    return behavior is None or behavior.changes_files


def is_simulated(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> bool:
    """Return whether the programs of a container's command are simulated, as far as its objects are known."""
    return program_of(images, container, full_context(images, pod, container, script)) is not None


def handler_timeline(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    argv: Sequence[str],
    *,
    restarts: int,
) -> Timeline:
    """Return the results of the command of a probe or a hook during a run of the container."""
    timeline = outcome_of_handler(images, pod, container, script, argv, restarts=restarts).timeline
    return UNKNOWN_TIMELINE if timeline is None else timeline


def outcome_of_handler(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    argv: Sequence[str],
    *,
    restarts: int = 0,
) -> HandlerOutcome:
    """Return what the command of a probe or a hook does during a run of the container, as far as it is known in advance."""
    if not argv:
        return HandlerOutcome(UNKNOWN_TIMELINE, interferes=False)
    command = _handler_command(images, pod, container, argv)
    main = None
    # A script in an annotation stands for a program that may do more than the script.
    has_script = script.command(container["name"]) is not None
    if not has_script and program_of_run(images, pod, container, script)() is not None:
        shared_mounts = shared_mount_paths(pod, container)
        places = unknown_places(images, pod, container, script)
        main_context = replace(
            context_of(images, pod, container, script, shared_mounts, places),
            fails_unknown=command.fails_unknown,
        )
        main = invocation_of(images, container, main_context)
    if main is None:
        folders: tuple[str, ...] | None = _empty_folders_beside_server(images, pod, container, script)
    else:
        folders = _empty_folders(pod, container, restarts)
    while True:
        outcome = handlers.outcome_of(main, command, folders)
        if outcome is None:
            command = _beside_processes(images, pod, container, command)
        elif outcome.missing_value:
            command = _with_value(images, pod, container, command, outcome.missing_value)
        else:
            return outcome


def _beside_processes(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, command: HandlerCommand
) -> HandlerCommand:
    """Return a command that knows what runs beside it: the results of one that does not ask for it are the same for more pods."""
    others = processes_at_start(images, pod, container, known_environment(pod, container))
    return replace(command, other_processes=others)


def _handler_command(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    argv: Sequence[str],
) -> HandlerCommand:
    """Return the command of a probe or a hook."""
    of_objects = object_variables(pod, container)
    known = known_environment(pod, container)
    variables = {name: value for name, value in known.items() if name not in of_objects.names}
    environment = shared_variables(container, variables)
    return HandlerCommand(
        argv=tuple(argv),
        environment=tuple(environment.items()),
        object_variables=of_objects._replace(left_out=frozenset(variables.keys() - environment.keys())),
        outside=outside_mounts(images, pod, container),
        identity=identity_of(images, pod, container),
        protection=write_protection(images, pod, container),
        fails_unknown=images.unknown_programs.of(pod) == FAIL,
        image=container.get("image") or "",
        user_names=tuple(user_names(images, container).items()),
        group_names=tuple(group_names(images, container).items()),
        installed=programs_of_image(images, container.get("image") or ""),
        places=file_places(images, container),
    )


def _with_value(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    command: HandlerCommand,
    missing_value: str,
) -> HandlerCommand:
    """Return a command with the value of its pod for which it asks, or the file; it shares its result with those that have the same."""
    if missing_value == HOST_NAME:
        return replace(command, hostname=hostname_of(pod) or "localhost")
    if missing_value.startswith("/"):
        files = (*command.files, *_system_file(images, pod, container, missing_value))
        return replace(command, files=files, asked_files=command.asked_files | {missing_value})
    of_objects, value = command.object_variables, known_environment(pod, container)[missing_value]
    return replace(
        command,
        environment=(*command.environment, (missing_value, value)),
        object_variables=of_objects._replace(left_out=of_objects.left_out - {missing_value}),
    )


def _system_file(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, path: str
) -> Iterator[tuple[str, FileEntry]]:
    """Yield the path of a file of every container with the file, unless a volume hides it."""
    mounted = tuple(mount["mountPath"] for mount in container.get("volumeMounts") or ())
    for each, entry in system_files(images, pod, container):
        if each == path and entry.data is not None and not path.startswith(mounted):
            yield path, entry


def unknown_handler_program(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, argv: Sequence[str]
) -> str:
    """Return the program that is not simulated and that the command of a probe or a hook needs; "" if there is none."""
    if not argv:
        return ""
    command = _beside_processes(images, pod, container, _handler_command(images, pod, container, argv))
    while (found := handlers.unknown_program_of_handler(command)).missing_value:
        command = _with_value(images, pod, container, command, found.missing_value)
    return found.program


def _empty_folders(pod: ReadOnlyTree, container: ReadOnlyTree, restarts: int) -> tuple[str, ...]:
    """Return the folders, with a final slash, that are empty when a run starts, and that no other container writes."""
    mounts = {
        f"{normpath(mount['mountPath'])}/": mount["name"] for mount in container.get("volumeMounts") or ()
    }
    others = {
        mount["name"]
        for other in every_container(pod["spec"])
        if other["name"] != container["name"]
        for mount in other.get("volumeMounts") or ()
    }
    own = {
        volume["name"]
        for volume in pod["spec"].get("volumes") or ()
        if "emptyDir" in volume and volume["name"] not in others
    }
    folders = [path for path, name in mounts.items() if name in own and restarts == 0]
    is_mounted = any(_TEMPORARY.startswith(path) for path in mounts)
    return tuple(folders if is_mounted else [*folders, _TEMPORARY])


def _empty_folders_beside_server(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script
) -> tuple[str, ...] | None:
    """Return the empty folders of a container in which the server of its image writes nothing; None if nobody knows."""
    own = folders_of_server(images, container, script)
    if own is None:
        return None
    return tuple(
        folder
        for folder in _empty_folders(pod, container, 0)
        if not any(path.startswith(folder) or folder.startswith(path) for path in own)
    )


def folders_of_server(images: ImageTable, container: ReadOnlyTree, script: Script) -> tuple[str, ...] | None:
    """Return where the server of a container's image may write, besides the folders of a system, with final slashes.

    None if nobody knows, or the container runs something else.
    """
    image = images.behavior_of(container)
    if image is None or image.folders is None or script.command(container["name"]) is not None:
        return None
    if not runs_server(images, container):
        return None
    values = (entry.get("value") or "" for entry in container.get("env") or ())
    texts = [*(container.get("command") or ()), *(container.get("args") or ()), *values]
    paths = [
        *image.folders,
        *image.volumes,
        *image.configuration,
        *(need.path for need in image.writes),
        *(path for text in texts for path in _PATHS.findall(text)),
    ]
    return tuple(f"{path.rstrip('/')}/" for path in paths)


def port_answer(
    images: ImageTable,
    pod: ReadOnlyTree,
    request: PortProbe,
    script: Script,
    *,
    seconds: float = 0.0,
    servers: RunningServers | None = None,
) -> PortAnswer:
    """Return what a port of a pod answers to an attempt of a probe, some seconds after the start of the container."""
    if servers is None and seconds < _opens_at(images, pod, request.port, script):
        return REFUSED
    answer = probe_answers.predicted_answer(images, pod, request, script, seconds, servers)
    if (
        answer.unknown
        and answer.is_open
        and not pod["spec"].get("hostNetwork")
        and is_closed(images, pod, request.port, script, servers)
    ):
        return REFUSED
    return answer


def port_behavior(images: ImageTable, pod: ReadOnlyTree, port: int) -> PortBehavior | None:
    """Return what the server of a pod does on a port; None if nobody knows, or nothing listens there."""
    found = (listeners_of(images, pod, each).ports.get(port) for each in pod["spec"]["containers"])
    return next(filter(None, found), None)


def port_changes(images: ImageTable, pod: ReadOnlyTree, port: int) -> tuple[float, ...]:
    """Return the seconds after the start of a container at which the answers of a port change."""
    opens_at = _opens_at(images, pod, port, script_of(meta.annotations(pod)))
    changes = probe_answers.times_of_changes(images, pod, port)
    return (opens_at, *changes) if 0 < opens_at < inf else changes


def _opens_at(images: ImageTable, pod: ReadOnlyTree, port: int, script: Script) -> float:
    """Return the seconds after the start of a container at which it begins to listen on a port of the pod; 0 if nobody knows."""
    if str(port) in script.answers:
        return 0.0
    for container in concurrent_containers(pod):
        listeners = listeners_of(images, pod, container)
        if port in listeners.ports:
            return listeners.begin(port)
    return 0.0


def is_closed(
    images: ImageTable, pod: ReadOnlyTree, port: int, script: Script, servers: RunningServers | None = None
) -> bool:
    """Return whether nothing in the pod can listen on the port."""
    if str(port) in script.answers or pod["spec"].get("hostNetwork"):
        return False
    return not any(
        _may_listen(images, pod, container, port, script, servers) for container in concurrent_containers(pod)
    )


def _may_listen(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    port: int,
    script: Script,
    servers: RunningServers | None,
) -> bool:
    """Return whether a container listens on a port, or runs a program that is not simulated and may do so.

    A command that is interpreted from its start to its end listens nowhere but where its known servers do.
    """
    listeners = listeners_of(images, pod, container, servers)
    if port in listeners.ports or not listeners.may_listen(port):
        return port in listeners.ports
    is_scripted = script.command(container["name"]) is not None
    return (
        is_scripted or port in listeners.possible or program_of_run(images, pod, container, script)() is None
    )


class SimulatedPredictions:
    """The `Predictions` of containers whose images are in a table."""

    def __init__(self, images: ImageTable) -> None:
        self.image_user = partial(image_user, images)
        self.knows_image = partial(knows_image, images)
        self.knows_default_command = partial(knows_default_command, images)
        self.unread_configuration = partial(unread_configuration, images)
        self.missing_server = partial(missing_server, images)
        self.command_of = partial(command_of, images)
        self.reads_input = partial(reads_input, images)
        self.unknown_programs = images.unknown_programs.of
        self.program_of_run = partial(program_of_run, images)
        self.server_load = partial(server_load, images)
        self.end_of_entrypoint = partial(end_of_entrypoint, images)
        self.reaction_of_run = partial(reaction_of_run, images)
        self.ignores_term = partial(ignores_term, images)
        self.lacks_command = partial(lacks_command, images)
        self.runs_server = partial(runs_server, images)
        self.is_simulated = partial(is_simulated, images)
        self.unknown_program = partial(unknown_program, images)
        self.handler_timeline = partial(handler_timeline, images)
        self.unknown_handler_program = partial(unknown_handler_program, images)
        self.port_answer = partial(port_answer, images)
        self.port_behavior = partial(port_behavior, images)
        self.port_changes = partial(port_changes, images)
