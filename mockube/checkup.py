"""Checks of a machine for `mockube doctor`: whether clusters can run on it.

A check fails for a problem that prevents a cluster from running; a note is information.
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

from mockube.apimachinery.schema import minors
from mockube.clusters import ports
from mockube.clusters.named_cluster import ClusterState, cluster_folders, clusters_folder, inspect_cluster
from mockube.component_base.clock import Clock
from mockube.component_base.operating_system import os_problem
from mockube.failure import Failure
from mockube.kubectl import KUBECTL, how_to_install

MIN_OPEN_FILES: Final = 1024
"""Every watch of every client needs a socket."""
MIN_FREE_BYTES: Final = 200 << 20
EARLIEST_TIME: Final = datetime.fromisoformat("2026-01-01T00:00:00Z")
MAX_VERSION_SKEW: Final = 1
"""The number of minor versions by which kubectl may differ from its server, by the version skew policy of Kubernetes."""


class CheckResult(StrEnum):
    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


class CheckFinding(Struct, frozen=True, kw_only=True):
    verdict: CheckResult
    message: str


Check: TypeAlias = Callable[[Mapping[str, str], Clock], CheckFinding]


def ok(message: str) -> CheckFinding:
    return CheckFinding(verdict=CheckResult.OK, message=message)


def note(message: str) -> CheckFinding:
    return CheckFinding(verdict=CheckResult.NOTE, message=message)


def failed(message: str) -> CheckFinding:
    return CheckFinding(verdict=CheckResult.WRONG, message=message)


def run_checks(environment: Mapping[str, str], clock: Clock) -> Iterator[tuple[str, CheckFinding]]:
    """Yield the name and finding of each check. A check that raises an error has failed."""
    for name, check in CHECKS.items():
        try:
            yield name, check(environment, clock)
        except OSError as error:
            yield name, failed(os_problem(error))
        except Failure as failure:
            yield name, failed(str(failure))


def _python(_environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    summary = f"{platform.python_version()} at {sys.executable}"
    return ok(summary) if sys.version_info >= (3, 11) else failed(f"{summary}: 3.11 is needed")


def _system(_environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    summary = f"{platform.system()} {platform.release()}, {os.cpu_count()} cores"
    if sys.platform == "linux":
        return ok(summary)
    return note(f"{summary}: if mockube is killed with SIGKILL, its processes may keep running")


def _open_files(_environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    limit, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit >= MIN_OPEN_FILES:
        return ok(f"{limit} files may be open at a time")
    return failed(f"only {limit} files may be open at a time: run `ulimit -n {maximum}`")


def _clusters_folder(environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    return _writable(clusters_folder(environment))


def _temporary_folder(_environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    try:
        return _writable(Path(tempfile.gettempdir()))
    except FileNotFoundError as error:
        return failed(f"no temporary folder is writable: {error}")


def _writable(folder: Path) -> CheckFinding:
    """Check that the folder is writable, or, if it does not exist, its nearest parent that exists."""
    folder_or_parent = next(path for path in (folder, *folder.parents) if path.exists())
    if not folder_or_parent.is_dir():
        return failed(f"{folder_or_parent} is a file instead of a folder: move it, or set XDG_DATA_HOME")
    if not os.access(folder_or_parent, os.W_OK | os.X_OK):
        return failed(f"{folder_or_parent} is not writable: run `chmod u+rwx` on it, or set XDG_DATA_HOME")
    return ok(f"{folder} is writable")


def _disk(environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    folder_or_parent = next(path for path in clusters_folder(environment).parents if path.exists())
    free_bytes = shutil.disk_usage(folder_or_parent).free
    summary = f"{free_bytes >> 20} MiB are free at {folder_or_parent}"
    return (
        ok(summary)
        if free_bytes >= MIN_FREE_BYTES
        else failed(f"{summary}: logs and data need {MIN_FREE_BYTES >> 20}")
    )


def _port(environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    if ports.is_free(ports.LOOPBACK, ports.UPSTREAM_PORT):
        return ok(f"{ports.UPSTREAM_PORT} is free")
    return note(
        f"{ports.UPSTREAM_PORT} is in use by {ports.port_user(ports.UPSTREAM_PORT, environment)}: `mockube up` needs --secure-port=0"
    )


def _loopback(_environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    try:
        with socket.create_server((ports.LOOPBACK, 0)):
            return ok(f"{ports.LOOPBACK} accepts listeners")
    except OSError as error:
        return failed(f"{ports.LOOPBACK} cannot be listened on: {error.strerror}")


def _kubectl(_environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    path = shutil.which(KUBECTL)
    if path is None:
        return note(f"not found: {how_to_install()}")
    result = subprocess.run(  # noqa: S603 - it was found by its name
        [path, "version", "--client"], capture_output=True, text=True, check=False
    )
    version = re.search(r"v(\d+)\.(\d+)\S*", result.stdout)
    if version is None:
        return failed(f"{path} does not print its version: {(result.stderr or result.stdout).strip()}")
    if abs(int(version[2]) - minors.number(minors.NEWEST)) > MAX_VERSION_SKEW:
        return note(f"{version[0]} at {path}, which is not within the supported skew of {minors.NEWEST}")
    return ok(f"{version[0]} at {path}")


def _clusters(environment: Mapping[str, str], _clock: Clock) -> CheckFinding:
    clusters = [inspect_cluster(folder) for folder in cluster_folders(environment)]
    killed = [cluster.folder.name for cluster in clusters if cluster.state is ClusterState.DEAD]
    if killed:
        return failed(f"{', '.join(killed)}: killed: run `mockube down --name={killed[0]}` to clean up")
    running = [cluster.folder.name for cluster in clusters if cluster.state is ClusterState.RUNNING]
    count = "1 cluster" if len(clusters) == 1 else f"{len(clusters)} clusters"
    return ok(f"{count}, running: {', '.join(running) or 'none'}")


def _clock_time(environment: Mapping[str, str], clock: Clock) -> CheckFinding:
    now = clock.now()
    if now < EARLIEST_TIME:
        return failed(f"the clock is at {now:%Y-%m-%d}: certificates will not be valid")
    for folder in cluster_folders(environment):
        for certificate in folder.pki.glob("*.crt"):
            if certificate.stat().st_mtime > now.timestamp():
                return failed(f"{certificate} was created in the future: the clock was set back")
    return ok(f"it is {now:%Y-%m-%d %H:%M:%S} UTC")


CHECKS: Final[Mapping[str, Check]] = {
    "Python": _python,
    "system": _system,
    "open files": _open_files,
    "clusters' folder": _clusters_folder,
    "temporary folder": _temporary_folder,
    "disk": _disk,
    "address": _loopback,
    "port": _port,
    "kubectl": _kubectl,
    "clusters": _clusters,
    "clock": _clock_time,
}
