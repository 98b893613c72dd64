"""Named clusters: the folder of each cluster, its lock, the record of its run, and its state.

The folder is `$XDG_DATA_HOME/mockube/clusters/NAME`. Certificates and keys remain in it when the cluster stops, so that the
kubeconfig stays valid; so do the objects with `--keep`. The process that runs the cluster holds the lock, which the kernel
releases when that process dies. If there is a record and the cluster is not locked, that process was killed.
"""

import fcntl
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from mockube import launch
from mockube.apiserver.pki.private import write_private
from mockube.component_base import component_urls
from mockube.component_base.clock import Clock
from mockube.component_base.fork_orders import NAME_PATTERN
from mockube.component_base.operating_system import read_process_stat
from mockube.etcd.embedded.lock import check_private, open_lock
from mockube.etcd.errors import UnsafeDirectory
from mockube.failure import Failure, Missing, UsageError

MEMORY: Final = launch.MEMORY
POLL_SECONDS: Final = 0.05
"""The polling interval of a cluster's files in seconds."""

_NAME: Final = re.compile(NAME_PATTERN)
_LOCK_TRIES: Final = 20
_LOCK_PAUSE: Final = 0.01
"""Between tries to lock, because a process that checks the lock holds it for a short time."""
_MAX_LOCK_BYTES: Final = 100
"""Bytes of the lock that are read."""


class ClusterFolder(Struct, frozen=True, kw_only=True):
    """The files of a named cluster."""

    name: str
    path: Path

    @property
    def context(self) -> str:
        """The name of the cluster, its user and its context in a kubeconfig."""
        return "mockube" if self.name == launch.NAME else f"mockube-{self.name}"

    def prepare(self) -> None:
        """Create the folders. They are private, because their files contain the administrator's credentials."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.path, self.pki, self.logs):
            folder.mkdir(mode=0o700, exist_ok=True)
            try:
                check_private(folder)
            except UnsafeDirectory as error:
                raise Failure(str(error)) from error

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def pki(self) -> Path:
        return self.path / "pki"

    @property
    def component_urls(self) -> Path:
        """The file in which the controller manager says where its health is served."""
        return self.pki / component_urls.FILE_NAME

    @property
    def admin_kubeconfig(self) -> Path:
        """The administrator's kubeconfig, as the server writes it."""
        return self.pki / "admin.kubeconfig"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def log(self, component: str) -> Path:
        return self.logs / f"{component}.log"

    @property
    def data(self) -> Path:
        """The stored objects, with `--keep`."""
        return self.path / "data"

    @property
    def fork_of(self) -> Path:
        """The file that contains the name of the cluster of which this one is a fork."""
        return self.path / "fork-of"

    @property
    def snapshot(self) -> Path:
        """The snapshot with which a fork starts, and to which a reset goes back."""
        return self.path / "fork.gz"

    @property
    def record(self) -> Path:
        return self.path / "running.json"

    @property
    def lock(self) -> Path:
        return self.path / "lock"


def cluster_folder(name: str, environment: Mapping[str, str]) -> ClusterFolder:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f'"{name}" is not a valid cluster name: use lower-case letters, digits and "-" between them, at most 40'
        )
    return ClusterFolder(name=name, path=clusters_folder(environment) / name)


def cluster_folders(environment: Mapping[str, str]) -> Sequence[ClusterFolder]:
    """Return the folders of all clusters, by name."""
    return _folders_in(clusters_folder(environment))


def _folders_in(folder: Path) -> Sequence[ClusterFolder]:
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [ClusterFolder(name=name, path=folder / name) for name in names if _NAME.fullmatch(name)]


def clusters_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of all clusters. A relative $XDG_DATA_HOME is ignored, as the XDG specification requires."""
    xdg_data_home = Path(environment.get("XDG_DATA_HOME", ""))
    data = xdg_data_home if xdg_data_home.is_absolute() else Path.home() / ".local" / "share"
    return data / "mockube" / "clusters"


# --- the lock: its file has the holder's process id and start time, since process ids are reused


class ClusterLocked(Failure):
    """Another process runs the cluster."""


class Holder(NamedTuple):
    """The process that holds a cluster's lock. No other process is equal to it until the machine restarts."""

    pid: int
    """0 before the process has written its id."""
    started: str
    """The start time in clock ticks since the machine started; "" if the system does not provide it."""


@asynccontextmanager
async def hold_lock(folder: ClusterFolder, clock: Clock) -> AsyncIterator[None]:
    folder.prepare()
    descriptor = open_lock(folder.lock)
    try:
        for _ in range(_LOCK_TRIES):
            if _lock(descriptor, fcntl.LOCK_EX):
                break
            await clock.sleep(_LOCK_PAUSE)
        else:
            raise ClusterLocked(f'"{folder.name}" is already running')
        pid = os.getpid()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{pid} {_start_of(pid)}\n".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def lock_holder(path: Path) -> Holder | None:
    """Return the process that holds a lock file; None if it is not locked."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        if _lock(descriptor, fcntl.LOCK_SH):
            return None
        pid, _, started = (
            os.pread(descriptor, _MAX_LOCK_BYTES, 0).decode(errors="replace").strip().partition(" ")
        )
        return Holder(int(pid), started) if pid.isdecimal() else Holder(0, "")
    finally:
        os.close(descriptor)


def send_signals(to: Holder, numbers: Sequence[signal.Signals]) -> None:
    """Send signals to the process if it still runs, but not to another process that reuses its id."""
    with suppress(ProcessLookupError):
        if not hasattr(os, "pidfd_open"):
            for number in numbers:
                os.kill(to.pid, number)
            return
        descriptor = os.pidfd_open(to.pid)
        try:
            if _start_of(to.pid) == to.started:
                for number in numbers:
                    signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def _start_of(pid: int) -> str:
    """Return when a process has started; "" if it has ended, or if the system does not say."""
    try:
        return read_process_stat(pid).started
    except OSError:
        return ""


def _lock(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# --- the record, for commands in other terminals: the process that runs the cluster writes and removes it


class Component(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    """0 while the component does not run."""
    restarts: int = 0


class ClusterRecord(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    version: str
    started: str
    detached: bool
    nodes: int
    pools: str = ""
    """The pools of the nodes, unless the store requests others."""
    packs: str
    profile: str = launch.MINIMAL
    """What it contains besides nodes for pods."""
    control_planes: int = 0
    """The number of control-plane nodes."""
    store: str
    """`MEMORY`, the data folder, or the endpoints of etcd."""
    fork_of: str = ""
    """The cluster of which it is a fork; "" if it is none."""
    one_process: bool = False
    """Whether both programs run in one process."""
    is_copy: bool = False
    """Whether it is a copy of a running process, which runs both programs and has no other one above it."""
    flags: tuple[str, ...] = ()
    """The flags that were set for the two programs."""
    ready: bool = False
    url: str = ""
    """The server's URL; "" until the cluster is ready."""
    resets: int = 0
    components: Mapping[str, Component] = {}


def write_record(folder: ClusterFolder, record: ClusterRecord) -> None:
    write_private(folder.record, msgspec.json.encode(record))


def read_record(path: Path) -> ClusterRecord | None:
    """Return the record; None if there is none, or if it is invalid."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterRecord)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


# --- the state


class ClusterState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    DEAD = "dead"
    """The process that ran it was killed."""


class FoundCluster(Struct, frozen=True, kw_only=True):
    """A named cluster and its state."""

    folder: ClusterFolder
    state: ClusterState
    record: ClusterRecord | None = None
    """The record of the current run, or of the run that was killed."""
    holder: Holder | None = None
    """The process that runs it."""


def inspect_cluster(folder: ClusterFolder) -> FoundCluster:
    lock_owner, latest_record = lock_holder(folder.lock), read_record(folder.record)
    if lock_owner is not None and latest_record is not None and latest_record.pid != lock_owner.pid:
        latest_record = None  # of an earlier run, which was killed
    return FoundCluster(
        folder=folder,
        state=_state_of(latest_record, is_locked=lock_owner is not None),
        record=latest_record,
        holder=lock_owner,
    )


def find_cluster(name: str, environment: Mapping[str, str]) -> FoundCluster:
    """Return a cluster, running or not; raise Missing if it does not exist."""
    folder = cluster_folder(name, environment)
    if not folder.path.is_dir():
        others = ", ".join(_with_state(each) for each in cluster_folders(environment))
        hint = f"choose with --name: {others}" if others else f"`mockube up{name_flag(name)}` starts one"
        raise Missing(f'there is no cluster "{name}": {hint}')
    return inspect_cluster(folder)


def running_cluster(name: str, environment: Mapping[str, str]) -> tuple[ClusterFolder, ClusterRecord]:
    """Return the folder and record of a cluster; raise Missing if it is not ready."""
    cluster = find_cluster(name, environment)
    return cluster.folder, ready_record(cluster)


def ready_record(cluster: FoundCluster) -> ClusterRecord:
    """Return the record of a cluster; raise Missing if it is not ready."""
    if cluster.state is not ClusterState.RUNNING or cluster.record is None:
        name = cluster.folder.name
        if cluster.state is ClusterState.STARTING:
            raise Missing(f'"{name}" is starting: try again')
        running = running_names(cluster.folder.path.parent)
        hint = f", and --name chooses one that runs: {', '.join(running)}" if running else ""
        raise Missing(f'"{name}" is not running: `mockube up{name_flag(name)}` starts it{hint}')
    return cluster.record


def running_names(clusters: Path) -> Sequence[str]:
    """Return the names of the clusters that run, in the folder of all clusters."""
    found = [inspect_cluster(folder) for folder in _folders_in(clusters)]
    return [each.folder.name for each in found if each.state is ClusterState.RUNNING]


def _with_state(folder: ClusterFolder) -> str:
    state = inspect_cluster(folder).state
    return folder.name if state is ClusterState.RUNNING else f"{folder.name} ({state})"


def name_flag(name: str) -> str:
    return "" if name == launch.NAME else f" --name={name}"


def _state_of(latest_record: ClusterRecord | None, *, is_locked: bool) -> ClusterState:
    if is_locked:
        return ClusterState.RUNNING if latest_record and latest_record.ready else ClusterState.STARTING
    return ClusterState.DEAD if latest_record else ClusterState.STOPPED


async def wait_until(condition: Callable[[], bool], clock: Clock, *, seconds: float) -> bool:
    """Wait until the condition is true, and return whether it was in time."""
    deadline = clock.monotonic() + seconds
    while not condition():
        if clock.monotonic() >= deadline:
            return False
        await clock.sleep(POLL_SECONDS)
    return True
