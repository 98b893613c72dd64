"""A named cluster as it is found: does it run, and what is known of it."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from mockube.clusters import record
from mockube.clusters.folders import ClusterFolder, cluster_folder, cluster_folders
from mockube.clusters.lock import Holder, holder
from mockube.clusters.record import Record
from mockube.failure import Missing


class State(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    DEAD = "dead"
    """Whatever ran it was killed."""


class FoundCluster(Struct, frozen=True, kw_only=True):
    folder: ClusterFolder
    state: State
    record: Record | None = None
    """Of the run that goes on, or of the one that was killed."""
    holder: Holder | None = None
    """The process that runs it."""


def look(folder: ClusterFolder) -> FoundCluster:
    running, found = holder(folder.lock), record.read(folder.record)
    if running is not None and found is not None and found.pid != running.pid:
        found = None  # of an earlier run, that was killed
    return FoundCluster(
        folder=folder, state=_state(found, is_locked=running is not None), record=found, holder=running
    )


def find(name: str, environment: Mapping[str, str]) -> FoundCluster:
    """One that exists, whether it runs or not."""
    folder = cluster_folder(name, environment)
    if not folder.path.is_dir():
        others = ", ".join(one.name for one in cluster_folders(environment))
        hint = f"choose with --name: {others}" if others else f"`mockube up{flag_of(name)}` starts one"
        raise Missing(f'there is no cluster "{name}": {hint}')
    return look(folder)


def running(name: str, environment: Mapping[str, str]) -> tuple[ClusterFolder, Record]:
    """One that runs, and is ready."""
    found = find(name, environment)
    return found.folder, ready_record(found)


def ready_record(found: FoundCluster) -> Record:
    """Of one that runs and is ready; Missing if it does not."""
    if found.state is not State.RUNNING or found.record is None:
        name = found.folder.name
        raise Missing(f'"{name}" is not running: `mockube up{flag_of(name)}` starts it')
    return found.record


def flag_of(name: str) -> str:
    return "" if name == "default" else f" --name {name}"


def _state(found: Record | None, *, is_locked: bool) -> State:
    if is_locked:
        return State.RUNNING if found and found.ready else State.STARTING
    return State.DEAD if found else State.STOPPED
