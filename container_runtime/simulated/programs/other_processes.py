"""The processes of a container beside those of a command in it: its first process, and those of a shared namespace. Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import has_default_command
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.images.table import behavior_of
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runs import NoLogs, run_of
from mockube.container_runtime.simulated.files.process_files import process_files
from mockube.container_runtime.simulated.files.users import identity_of
from mockube.container_runtime.simulated.shell.filesystem import FileEntry
from mockube.container_runtime.simulated.shell.process import OtherProcess

from . import program

_PIDS_OF_CONTAINER: Final = 7
"""The distance of the first processes of containers that share their processes."""


def first_argv(pod: ReadOnlyTree, container: ReadOnlyTree, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command line of a container's first process; of an image whose program nobody knows, the name of the image."""
    text = script_of(meta.annotations(pod)).command(container["name"])
    if text is not None:
        return ("sh", "-c", text)
    image = behavior_of(container)
    if image is not None and image.process and has_default_command(container):
        return (image.process,)
    argv = program.command_of(container)
    if argv:
        return tuple(expand_references(argv, environment))
    return ((container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0],)


def process_entries(
    pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> dict[str, FileEntry]:
    """Return the files in /proc about a container's first process."""
    environment = environment_of(pod, container, references)
    argv = first_argv(pod, container, environment)
    user = identity_of(pod, container).user
    return {
        path: FileEntry(
            data=data, mode=0o400 if path.endswith("environ") else 0o444, user=user, read_only=True
        )
        for path, data in process_files(pod, container, argv, environment)
    }


def other_processes(
    pod: ReadOnlyTree, container: ReadOnlyTree, environment: Mapping[str, str], now: datetime
) -> tuple[OtherProcess, ...]:
    """Return what runs in a container besides a client's command."""
    if pod["spec"].get("shareProcessNamespace"):
        return tuple(_shared_processes(pod, environment, now))
    started = _started(pod, container) or now
    argv = first_argv(pod, container, environment)
    return (OtherProcess(1, argv, identity_of(pod, container).user, started),)


def _shared_processes(
    pod: ReadOnlyTree, environment: Mapping[str, str], now: datetime
) -> Iterator[OtherProcess]:
    containers = [other for other in every_container(pod["spec"]) if _started(pod, other) is not None]
    starts = [_started(pod, other) or now for other in containers]
    yield OtherProcess(1, ("/pause",), 65535, min(starts, default=now))
    for index, (other, started) in enumerate(zip(containers, starts, strict=True), start=1):
        argv = first_argv(pod, other, environment)
        yield OtherProcess(index * _PIDS_OF_CONTAINER, argv, identity_of(pod, other).user, started)


def _started(pod: ReadOnlyTree, container: ReadOnlyTree) -> datetime | None:
    """Return when a container started that still runs."""
    try:
        run = run_of(pod, container["name"])
    except NoLogs:
        return None
    return run.started if run.finished is None else None
