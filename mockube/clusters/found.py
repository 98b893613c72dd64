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
    """Of the current run, or of the one that was killed."""
    holder: Holder | None = None
    """The process that runs it."""


def look(folder: ClusterFolder) -> FoundCluster:
    running, latest_record = holder(folder.lock), record.read(folder.record)
    if running is not None and latest_record is not None and latest_record.pid != running.pid:
        latest_record = None  # of an earlier run, that was killed
    return FoundCluster(
        folder=folder,
        state=_state(latest_record, is_locked=running is not None),
        record=latest_record,
        holder=running,
    )


def find(name: str, environment: Mapping[str, str]) -> FoundCluster:
    """One that exists, whether it runs or not."""
    folder = cluster_folder(name, environment)
    if not folder.path.is_dir():
        others = ", ".join(other.name for other in cluster_folders(environment))
        hint = f"choose with --name: {others}" if others else f"`mockube up{flag_of(name)}` starts one"
        raise Missing(f'there is no cluster "{name}": {hint}')
    return look(folder)


def running(name: str, environment: Mapping[str, str]) -> tuple[ClusterFolder, Record]:
    """One that runs, and is ready."""
    cluster = find(name, environment)
    return cluster.folder, ready_record(cluster)


def ready_record(cluster: FoundCluster) -> Record:
    """Of one that runs and is ready; Missing if it does not."""
    if cluster.state is not State.RUNNING or cluster.record is None:
        name = cluster.folder.name
        raise Missing(f'"{name}" is not running: `mockube up{flag_of(name)}` starts it')
    return cluster.record


def flag_of(name: str) -> str:
    return "" if name == "default" else f" --name {name}"


def _state(latest_record: Record | None, *, is_locked: bool) -> State:
    if is_locked:
        return State.RUNNING if latest_record and latest_record.ready else State.STARTING
    return State.DEAD if latest_record else State.STOPPED
