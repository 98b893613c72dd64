"""Checks of a machine: whether clusters can run on it.

Wrong is what keeps a cluster from running; a note is what may be of interest.
"""

import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.version import MINOR
from mockube.clusters.named_cluster import State, cluster_folders, clusters_folder, look
from mockube.clusters.ports import LOOPBACK, UPSTREAM, holder, is_free
from mockube.failure import Failure

FILES: Final = 1024
"""Each client that watches holds a socket for each kind it watches."""
DISK: Final = 200 << 20
OLDEST_MOMENT: Final = datetime.fromisoformat("2026-01-01T00:00:00Z")
SKEW: Final = 1
"""How many minor versions kubectl may be away from its server, as Kubernetes promises it."""


class CheckResult(StrEnum):
    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


class Finding(Struct, frozen=True, kw_only=True):
    verdict: CheckResult
    words: str


Check: TypeAlias = Callable[[Mapping[str, str], Clock], Finding]


def ok(words: str) -> Finding:
    return Finding(verdict=CheckResult.OK, words=words)


def note(words: str) -> Finding:
    return Finding(verdict=CheckResult.NOTE, words=words)


def failed(words: str) -> Finding:
    return Finding(verdict=CheckResult.WRONG, words=words)


def look_around(environment: Mapping[str, str], clock: Clock) -> Iterator[tuple[str, Finding]]:
    """What is found of each thing, by its name. What cannot be looked at is wrong."""
    for name, check in CHECKS.items():
        try:
            yield name, check(environment, clock)
        except OSError as error:
            yield name, failed(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except Failure as failure:
            yield name, failed(str(failure))


def _python(_environment: Mapping[str, str], _clock: Clock) -> Finding:
    summary = f"{platform.python_version()} at {sys.executable}"
    return ok(summary) if sys.version_info >= (3, 11) else failed(f"{summary}: 3.11 is needed")


def _system(_environment: Mapping[str, str], _clock: Clock) -> Finding:
    summary = f"{platform.system()} {platform.release()}, {os.cpu_count()} cores"
    if sys.platform == "linux":
        return ok(summary)
    return note(f"{summary}: if mockube is killed with SIGKILL, its processes may keep running")


def _files(_environment: Mapping[str, str], _clock: Clock) -> Finding:
    limit, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit >= FILES:
        return ok(f"{limit} files may be open at a time")
    return failed(f"only {limit} files may be open at a time: run `ulimit -n {maximum}`")


def _folder(environment: Mapping[str, str], _clock: Clock) -> Finding:
    return _writable(clusters_folder(environment))


def _temporary(_environment: Mapping[str, str], _clock: Clock) -> Finding:
    try:
        return _writable(Path(tempfile.gettempdir()))
    except FileNotFoundError as error:
        return failed(f"no temporary folder is writable: {error}")


def _writable(folder: Path) -> Finding:
    """The folder, or the nearest one above it that there is."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        return failed(f"{there} is a file instead of a folder: move it, or set XDG_DATA_HOME")
    if not os.access(there, os.W_OK | os.X_OK):
        return failed(f"{there} is not writable: run `chmod u+rwx` on it, or set XDG_DATA_HOME")
    return ok(f"{folder} is writable")


def _disk(environment: Mapping[str, str], _clock: Clock) -> Finding:
    there = next(path for path in clusters_folder(environment).parents if path.exists())
    free = shutil.disk_usage(there).free
    summary = f"{free >> 20} MiB are free at {there}"
    return ok(summary) if free >= DISK else failed(f"{summary}: logs and data need {DISK >> 20}")


def _port(environment: Mapping[str, str], _clock: Clock) -> Finding:
    if is_free(LOOPBACK, UPSTREAM):
        return ok(f"{UPSTREAM} is free")
    return note(
        f"{UPSTREAM} is in use by {holder(UPSTREAM, environment)}: `mockube up` needs --secure-port=0"
    )


def _loopback(_environment: Mapping[str, str], _clock: Clock) -> Finding:
    try:
        with socket.create_server((LOOPBACK, 0)):
            return ok(f"{LOOPBACK} accepts listeners")
    except OSError as error:
        return failed(f"{LOOPBACK} cannot be listened on: {error.strerror}")


def _kubectl(_environment: Mapping[str, str], _clock: Clock) -> Finding:
    path = shutil.which("kubectl")
    if path is None:
        return note("not found: see https://kubernetes.io/docs/tasks/tools")
    answer = subprocess.run(  # noqa: S603 - it was found by its name
        [path, "version", "--client"], capture_output=True, text=True, check=False
    )
    version = re.search(r"v(\d+)\.(\d+)\S*", answer.stdout)
    if version is None:
        return failed(f"{path} does not print its version: {(answer.stderr or answer.stdout).strip()}")
    if abs(int(version[2]) - int(MINOR)) > SKEW:
        return note(f"{version[0]} at {path}, which is not within the supported skew of 1.{MINOR}")
    return ok(f"{version[0]} at {path}")


def _clusters(environment: Mapping[str, str], _clock: Clock) -> Finding:
    clusters = [look(folder) for folder in cluster_folders(environment)]
    dead = [cluster.folder.name for cluster in clusters if cluster.state is State.DEAD]
    if dead:
        return failed(f"{', '.join(dead)}: killed: run `mockube down --name {dead[0]}` to clean up")
    live = [cluster.folder.name for cluster in clusters if cluster.state is State.RUNNING]
    return ok(f"{len(clusters)} clusters, running: {', '.join(live) or 'none'}")


def _time(environment: Mapping[str, str], clock: Clock) -> Finding:
    now = clock.now()
    if now < OLDEST_MOMENT:
        return failed(f"the clock is at {now:%Y-%m-%d}: certificates will not be valid")
    for folder in cluster_folders(environment):
        for certificate in folder.pki.glob("*.crt"):
            if certificate.stat().st_mtime > now.timestamp():
                return failed(f"{certificate} was created in the future: the clock was set back")
    return ok(f"it is {now:%Y-%m-%d %H:%M:%S} UTC")


CHECKS: Final[Mapping[str, Check]] = {
    "Python": _python,
    "system": _system,
    "open files": _files,
    "clusters' folder": _folder,
    "temporary folder": _temporary,
    "disk": _disk,
    "address": _loopback,
    "port": _port,
    "kubectl": _kubectl,
    "clusters": _clusters,
    "clock": _time,
}
