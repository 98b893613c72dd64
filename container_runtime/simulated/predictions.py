"""What is known of simulated containers before they run (`Predictions`): what their commands do in the context of their pod. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from math import inf
from posixpath import normpath
from typing import Final, NamedTuple

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
from mockube.container_runtime.config.volumes import api_volume_names
from mockube.container_runtime.images.options import options_of
from mockube.container_runtime.images.programs import NO_SYSTEM, programs_of_image
from mockube.container_runtime.images.table import ImageTable, PortBehavior
from mockube.container_runtime.load import NO_LOAD, RunLoad
from mockube.container_runtime.pod_script import Script, script_of
from mockube.container_runtime.port_probe import REFUSED, PortAnswer, PortProbe
from mockube.container_runtime.simulation_values import FAIL
from mockube.container_runtime.start_errors import NOT_STARTED, message_of_start

from .files.image_places import file_places
from .files.mounts import (
    shared_mount_paths,
    shared_volumes,
    system_files,
    volume_folders,
    writable_paths,
    write_protection,
)
from .files.users import group_names, identity_of, user_names
from .programs import handlers, image_load, program, requirements
from .programs import unread_configuration as unread
from .programs.commands import live_command
from .programs.handlers import HandlerCommand, HandlerOutcome
from .programs.lasting_files import has_small_disk, is_lasting
from .programs.mount_conflicts import mount_problem
from .programs.object_values import is_file_of_object, object_variables
from .programs.other_processes import processes_at_start
from .programs.program import (
    ANY_YEAR,
    MUCH,
    CommandContext,
    Invocation,
    MountPaths,
    UnknownPlaces,
    invocation_of,
    pid_of,
    program_of,
    shared_variables,
    unknown_program_of,
)
from .programs.requirements import FindObject
from .programs.script_commands import only_command, simple_commands
from .programs.wrong_options import assumed_argument
from .servers import probe_answers
from .servers.listeners import listeners_of
from .servers.port_conflicts import end_without_port
from .servers.server_programs import SERVERS
from .shell.filesystem import FileEntry
from .shell.outside import OutsideAnswer

_PATHS: Final = re.compile(r"/[\w.+-]+(?:/[\w.+-]+)*")
_LITTLE: Final = 1
"""The bytes from which on what a command writes counts on a small disk."""
_TEMPORARY: Final = "/tmp/"  # noqa: S108 - of a simulated container
"""The folder that is empty in an image."""


def image_user(images: ImageTable, container: ReadOnlyTree) -> int | str | None:
    image = images.behavior_of(container)
    return None if image is None else image.user_name or image.user


def knows_image(images: ImageTable, container: ReadOnlyTree) -> bool:
    return images.behavior_of(container) is not None or program.is_pause_image(container.get("image") or "")


def knows_default_command(images: ImageTable, container: ReadOnlyTree) -> bool:
    """Return whether it is known what the command of a container's image does: a server has a log or ports."""
    return (
        program.is_pause_image(container.get("image") or "")
        or program.serves(images, container)
        or program.default_run(images, container) is not None
        or bool(program.command_of(images, container))
        or lacks_command(images, container)
    )


def unread_configuration(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    return unread.unread_configuration(images, pod, container)


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
        _full_context(images, pod, container, script),
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
    full_context = _full_context(images, pod, container, script)
    invocation = invocation_of(images, container, full_context)
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


def lacks_command(images: ImageTable, container: ReadOnlyTree) -> bool:
    image = images.behavior_of(container)
    is_empty = image is not None and image.programs == (NO_SYSTEM,)
    return is_empty and not program.command_of(images, container)


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
    return program_of(images, container, _full_context(images, pod, container, script)) is not None


def unknown_program(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> str:
    """Return the program of a container's command that is not simulated, also if it fails; "" if there is none."""
    if not program.command_of(images, container) and script.command(container["name"]) is None:
        return ""
    if is_file_of_object(pod, container, program.command_of(images, container)):
        return ""  # It is read when the container starts.
    return _unknown_program_in(images, pod, container, _full_context(images, pod, container, script))


def _unknown_program_in(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, context: CommandContext
) -> str:
    unknown = unknown_program_of(images, container, replace(context, fails_unknown=False))
    return "" if unknown and _is_known_server(images, pod, container, unknown) else unknown


def _is_known_server(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, program_name: str
) -> bool:
    """Return whether a program that is not interpreted is a server, of which everything is known that clients see.

    What a script gives to the server of an image is checked if nothing else is in the script, and the options of the server are known.
    """
    image, name = images.behavior_of(container), program_name.rpartition("/")[2]
    servers = (*SERVERS, *(image.servers if image is not None else ()))
    if name not in servers and container.get("command"):
        return False
    if image is not None and name not in SERVERS:
        argv = program.argv_of(images, container)
        is_checked = (
            only_command(argv, (name,))
            and options_of(name, container["image"]) is not None
            and not assumed_argument(images, pod, container)
        )
        commands = () if is_checked else simple_commands(argv)
        if any(len(words) > 1 and words[0].rpartition("/")[2] == name for words in commands):
            return False
    listeners = listeners_of(images, pod, container)
    return bool(listeners.ports) and all(listeners.ports.values()) and not listeners.unknown


def _full_context(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
) -> CommandContext:
    earlier, unknown_volumes = _earlier_containers(images, pod, container, script)
    shared_mounts = shared_mount_paths(pod, container) if earlier else ()
    return replace(
        _context(images, pod, container, script, shared_mounts, _mounts_of(container, unknown_volumes)),
        earlier=earlier,
        fails_unknown=images.unknown_programs.of(pod) == FAIL,
    )


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
            _context(images, pod, container, script, shared_mounts, places),
            fails_unknown=command.fails_unknown,
        )
        main = invocation_of(images, container, main_context)
    if main is None:
        folders: tuple[str, ...] | None = _empty_folders_beside_server(images, pod, container, script)
    else:
        folders = _empty_folders(pod, container, restarts)
    outcome = handlers.outcome_of(main, command, folders)
    if outcome is None:
        outcome = handlers.outcome_of(main, _beside_processes(images, pod, container, command), folders)
        assert outcome is not None
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
    text = "\0".join(argv)
    environment = shared_variables(container, variables, text)
    return HandlerCommand(
        argv=tuple(argv),
        environment=tuple(environment.items()),
        object_variables=of_objects._replace(names=of_objects.names | variables.keys() - environment.keys()),
        outside=outside_mounts(images, pod, container),
        identity=identity_of(images, pod, container),
        protection=write_protection(images, pod, container),
        fails_unknown=images.unknown_programs.of(pod) == FAIL,
        image=container.get("image") or "",
        user_names=tuple(user_names(images, container).items()),
        group_names=tuple(group_names(images, container).items()),
        installed=programs_of_image(images, container.get("image") or ""),
        places=file_places(images, container),
        files=_named_files(images, pod, container, text) if "/etc/" in text or "/dev/" in text else (),
    )


def _named_files(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, text: str
) -> tuple[tuple[str, FileEntry], ...]:
    """Return the files of every container that a command names, so that it has one result for all pods without them."""
    mounted = [mount["mountPath"] for mount in container.get("volumeMounts") or ()]
    return tuple(
        (path, entry)
        for path, entry in system_files(images, pod, container)
        if path in text and entry.data is not None and not path.startswith(tuple(mounted))
    )


def unknown_handler_program(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, argv: Sequence[str]
) -> str:
    """Return the program that is not simulated and that the command of a probe or a hook needs; "" if there is none."""
    if not argv:
        return ""
    command = _beside_processes(images, pod, container, _handler_command(images, pod, container, argv))
    return handlers.unknown_program_of_handler(command)


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


def _context(  # noqa: PLR0913 - as above
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    shared_mounts: MountPaths,
    places: UnknownPlaces,
    *,
    is_alone: bool = False,
) -> CommandContext:
    return CommandContext(
        hostname=hostname_of(pod),
        year=_year_of(pod),
        script=script.command(container["name"]),
        environment=partial(known_environment, pod, container),
        identity=identity_of(images, pod, container),
        volumes=writable_paths(pod, container),
        pid=pid_of(pod, container),
        folders=volume_folders(pod, container),
        protection=write_protection(images, pod, container),
        shared_mounts=shared_mounts,
        unknown_places=places,
        outside=outside_mounts(images, pod, container, is_alone=is_alone),
        object_variables=object_variables(pod, container),
        much=_LITTLE if has_small_disk(pod) else MUCH,
    )


def outside_mounts(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, *, is_alone: bool = False
) -> tuple[str, ...]:
    """Return the mount paths of a container's volumes of which nobody knows the files in advance: of API objects, and of others."""
    if not container.get("volumeMounts"):
        return ()
    return changing_mounts(images, pod, container, api_volume_names(pod), is_alone=is_alone)


def changing_mounts(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    names: frozenset[str] = frozenset(),
    *,
    is_alone: bool = False,
) -> tuple[str, ...]:
    """Return the mount paths of a container's volumes that others write: claims, nodes and other containers; and of volumes by name."""
    mounts = container.get("volumeMounts")
    if not mounts:
        return ()
    names |= {volume["name"] for volume in pod["spec"].get("volumes") or () if is_lasting(volume)}
    if not is_alone:
        names |= _volumes_of_others(images, pod, container)
    return tuple(normpath(mount["mountPath"]) for mount in mounts if mount["name"] in names)


def _volumes_of_others(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> frozenset[str]:
    """Return the names of the volumes that other containers write beside a container.

    What a program that is not simulated writes is not there: a command that needs it would fail.
    """
    concurrent = [each for each in probe_answers.concurrent_containers(pod) if each.get("volumeMounts")]
    others = [each for each in concurrent if each["name"] != container["name"]]
    if not others or len(others) == len(concurrent):
        return frozenset()
    known, unknown = set[str](), set[str]()
    own = shared_volumes(pod, container)
    for other in others:
        if shared := own & shared_volumes(pod, other):
            (known if _is_known(images, pod, other) else unknown).update(shared)
    return frozenset(known - unknown)


def _is_known(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    if has_default_command(container) and knows_default_command(images, container):
        return True
    script = script_of(meta.annotations(pod))
    return (
        program_of(images, container, _context(images, pod, container, script, (), (), is_alone=True))
        is not None
    )


def unknown_places(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script
) -> UnknownPlaces:
    """Return where a container has volumes into which earlier init containers that are not simulated may have written."""
    return _mounts_of(container, _earlier_containers(images, pod, container, script).unknown_volumes)


def _mounts_of(container: ReadOnlyTree, images: Mapping[str, str]) -> UnknownPlaces:
    """Return where a container mounts volumes, with the images that are known by the volumes' names."""
    return tuple(
        (normpath(mount["mountPath"]), images[mount["name"]])
        for mount in container.get("volumeMounts") or ()
        if mount["name"] in images
    )


def _year_of(pod: ReadOnlyTree) -> int:
    """Return the year in which the pod was created, without parsing the rest of the time."""
    created = (pod.get("metadata") or {}).get("creationTimestamp")
    return int(created[:4]) if created else ANY_YEAR


class _EarlierContainers(NamedTuple):
    """What the init containers that run before a container leave in volumes."""

    commands: tuple[Invocation, ...]
    """Those that share volumes with others."""
    unknown_volumes: Mapping[str, str]
    """The images that are not simulated and may have written into volumes, by the volumes' names."""


def _earlier_containers(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script
) -> _EarlierContainers:
    """Walk through the init containers once: what one of them reads depends on those before it."""
    others = pod["spec"].get("initContainers")
    if not others or not container.get("volumeMounts"):
        return _EarlierContainers((), {})
    commands: tuple[Invocation, ...] = ()
    unknown: dict[str, str] = {}
    read_only = api_volume_names(pod)
    for other in takewhile(lambda other: other["name"] != container["name"], others):
        mounts = shared_mount_paths(pod, other)
        context = _context(images, pod, other, script, mounts, _mounts_of(other, unknown))
        if _is_unknown(images, pod, other, script, replace(context, earlier=commands)):
            volumes = {mount["name"] for mount in other.get("volumeMounts") or ()} - read_only
            unknown |= dict.fromkeys(volumes, other.get("image") or "")
        if mounts and (command := invocation_of(images, other, context)):
            commands = (*commands, command)
    return _EarlierContainers(commands, unknown)


def _is_unknown(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script, context: CommandContext
) -> bool:
    if live_command(images, pod, container) or script.times_runs:
        return False
    argv = program.command_of(images, container)
    if not argv and script.command(container["name"]) is None:
        return not knows_default_command(images, container)
    # A file of an object is read when the container starts.
    return not is_file_of_object(pod, container, argv) and bool(
        _unknown_program_in(images, pod, container, context)
    )


def port_answer(
    images: ImageTable, pod: ReadOnlyTree, request: PortProbe, script: Script, *, seconds: float = 0.0
) -> PortAnswer:
    """Return what a port of a pod answers to an attempt of a probe, some seconds after the start of the container."""
    if seconds < _opens_at(images, pod, request.port, script):
        return REFUSED
    answer = probe_answers.predicted_answer(images, pod, request, script, seconds)
    if (
        answer.unknown
        and answer.is_open
        and not pod["spec"].get("hostNetwork")
        and is_closed(images, pod, request.port, script)
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
    for container in probe_answers.concurrent_containers(pod):
        if container.get("command") and port in listeners_of(images, pod, container).ports:
            return listens_from(images, pod, container, port)
    return 0.0


def listens_from(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, port: int) -> float:
    """Return the seconds after which the command of a container calls the program that listens on a port.

    Infinite if it never does; 0 if nobody knows, or if the command is that program itself.
    """
    name = listeners_of(images, pod, container).programs.get(port)
    if name is None:
        return 0.0
    script = script_of(meta.annotations(pod))
    calls = program.first_calls(images, container, _full_context(images, pod, container, script))
    if calls is None:
        return 0.0
    return calls.seconds.get(name, inf if calls.is_complete else 0.0)


def is_closed(images: ImageTable, pod: ReadOnlyTree, port: int, script: Script) -> bool:
    """Return whether nothing in the pod can listen on the port."""
    if str(port) in script.answers or pod["spec"].get("hostNetwork"):
        return False
    return not any(
        _may_listen(images, pod, container, port, script)
        for container in probe_answers.concurrent_containers(pod)
    )


def _may_listen(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, port: int, script: Script
) -> bool:
    """Return whether a container listens on a port, or runs a program that is not simulated and may do so.

    A command that is interpreted from its start to its end listens nowhere but where its known servers do.
    """
    listeners = listeners_of(images, pod, container)
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
