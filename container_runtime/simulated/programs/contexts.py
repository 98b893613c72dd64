"""The context of a container's command in its pod: what it has of volumes, of variables, and of the containers before and beside it. Pure."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile
from posixpath import normpath
from typing import Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import has_default_command
from mockube.container_runtime.config.environment import hostname_of, known_environment
from mockube.container_runtime.config.volumes import api_volume_names
from mockube.container_runtime.images.programs import NO_SYSTEM
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.pod_script import Script, script_of
from mockube.container_runtime.simulated.files.mounts import (
    shared_mount_paths,
    shared_volumes,
    volume_folders,
    writable_paths,
    write_protection,
)
from mockube.container_runtime.simulated.files.users import identity_of
from mockube.container_runtime.simulation_values import FAIL

from .commands import live_command
from .lasting_files import has_small_disk, is_lasting
from .object_values import is_file_of_object, object_variables
from .program import (
    ANY_YEAR,
    MUCH,
    CommandContext,
    Invocation,
    MountPaths,
    UnknownPlaces,
    command_of,
    default_run,
    invocation_of,
    is_pause_image,
    pid_of,
    program_of,
    serves,
    unknown_program_of,
)

_LITTLE: Final = 1
"""The bytes from which on what a command writes counts on a small disk."""


def concurrent_containers(pod: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the containers that the specification of a pod lets run at the same time."""
    spec = pod["spec"]
    yield from spec["containers"]
    yield from spec.get("ephemeralContainers") or ()
    for init in spec.get("initContainers") or ():
        if init.get("restartPolicy") == "Always":
            yield init


def knows_image(images: ImageTable, container: ReadOnlyTree) -> bool:
    return images.behavior_of(container) is not None or is_pause_image(container.get("image") or "")


def knows_default_command(images: ImageTable, container: ReadOnlyTree) -> bool:
    """Return whether it is known what the command of a container's image does: a server has a log or ports."""
    return (
        is_pause_image(container.get("image") or "")
        or serves(images, container)
        or default_run(images, container) is not None
        or bool(command_of(images, container))
        or lacks_command(images, container)
    )


def lacks_command(images: ImageTable, container: ReadOnlyTree) -> bool:
    image = images.behavior_of(container)
    is_empty = image is not None and image.programs == (NO_SYSTEM,)
    return is_empty and not command_of(images, container)


def unknown_program(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> str:
    """Return the program of a container's command that is not simulated, also if it fails; "" if there is none."""
    if not command_of(images, container) and script.command(container["name"]) is None:
        return ""
    if is_file_of_object(pod, container, command_of(images, container)):
        return ""  # It is read when the container starts.
    return _unknown_program_in(images, container, full_context(images, pod, container, script))


def _unknown_program_in(images: ImageTable, container: ReadOnlyTree, context: CommandContext) -> str:
    return unknown_program_of(images, container, replace(context, fails_unknown=False))


def full_context(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
) -> CommandContext:
    earlier, unknown_volumes = _earlier_containers(images, pod, container, script)
    shared_mounts = shared_mount_paths(pod, container) if earlier else ()
    return replace(
        context_of(images, pod, container, script, shared_mounts, _mounts_of(container, unknown_volumes)),
        earlier=earlier,
        fails_unknown=images.unknown_programs.of(pod) == FAIL,
    )


def context_of(  # noqa: PLR0913 - as above
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
    concurrent = [each for each in concurrent_containers(pod) if each.get("volumeMounts")]
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
        program_of(images, container, context_of(images, pod, container, script, (), (), is_alone=True))
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
        context = context_of(images, pod, other, script, mounts, _mounts_of(other, unknown))
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
    argv = command_of(images, container)
    if not argv and script.command(container["name"]) is None:
        return not knows_default_command(images, container)
    # A file of an object is read when the container starts.
    return not is_file_of_object(pod, container, argv) and bool(
        _unknown_program_in(images, container, context)
    )
