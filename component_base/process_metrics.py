"""The families that every component has: of its process, its version and its health checks.

Those of Prometheus' client libraries, `process_*`, are read from /proc, where it exists.
"""

import asyncio
import os
import resource
from pathlib import Path
from typing import Final

from .metrics import Collected, MetricsRegistry, counter, gauge
from .operating_system import read_process_stat
from .version import version_document

_PROC: Final = Path("/proc/self")
_CPU: Final = counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.")
_RESIDENT: Final = gauge("process_resident_memory_bytes", "Resident memory size in bytes.")
_VIRTUAL: Final = gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")
_VIRTUAL_MAX: Final = gauge(
    "process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes."
)
_OPEN_FDS: Final = gauge("process_open_fds", "Number of open file descriptors.")
_MAX_FDS: Final = gauge("process_max_fds", "Maximum number of open file descriptors.")
_START: Final = gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.")
_RECEIVED: Final = counter(
    "process_network_receive_bytes_total", "Number of bytes received by the process over the network."
)
_SENT: Final = counter(
    "process_network_transmit_bytes_total", "Number of bytes sent by the process over the network."
)
_TASKS: Final = gauge("mockube_asyncio_tasks", "Tasks of the event loop; Python's counterpart of goroutines.")
_UNLIMITED: Final = 2.0**64 - 1


def count_process(metrics: MetricsRegistry) -> None:
    """Collect the families of this process, which are read from /proc where it exists, and the number of its tasks."""
    metrics.on_collect(lambda: metrics.numbers(_TASKS).set(_tasks()))
    if (_PROC / "stat").exists():
        metrics.on_collect(lambda: _update(metrics))


def _update(metrics: MetricsRegistry) -> None:
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    stat = read_process_stat(os.getpid())
    metrics.numbers(_CPU).set((stat.user_ticks + stat.system_ticks) / ticks)
    metrics.numbers(_RESIDENT).set(stat.resident_pages * page)
    metrics.numbers(_VIRTUAL).set(stat.virtual_bytes)
    metrics.numbers(_START).set(_boot_time() + int(stat.started) / ticks)
    metrics.numbers(_VIRTUAL_MAX).set(_limit(resource.RLIMIT_AS))
    metrics.numbers(_MAX_FDS).set(_limit(resource.RLIMIT_NOFILE))
    metrics.numbers(_OPEN_FDS).set(sum(1 for _ in (_PROC / "fd").iterdir()))
    received, sent = _network_bytes()
    metrics.numbers(_RECEIVED).set(received)
    metrics.numbers(_SENT).set(sent)


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # no event loop runs
        return 0


def _limit(kind: int) -> float:
    limit = resource.getrlimit(kind)[0]
    return _UNLIMITED if limit == resource.RLIM_INFINITY else float(limit)


def _boot_time() -> float:
    lines = Path("/proc/stat").read_text().splitlines()
    return float(next((line.split()[1] for line in lines if line.startswith("btime ")), 0))


def _network_bytes() -> tuple[int, int]:
    """Return the bytes received and sent by all interfaces of the network namespace, as Go's client library counts them."""
    lines = (_PROC / "net" / "dev").read_text().splitlines()[2:]
    columns = [line.partition(":")[2].split() for line in lines]
    return sum(int(each[0]) for each in columns), sum(int(each[8]) for each in columns)


# --- the build


def build_info(git_version: str) -> Collected:
    """Return the version of a component, as `/version` has it."""
    document = version_document(git_version=git_version)
    major, _, rest = str(document["gitVersion"]).removeprefix("v").partition(".")
    parts = {"major": major, "minor": rest.partition(".")[0]}
    parts |= {label: document[_FIELDS[label]] for label in _BUILD.labels if label in _FIELDS}
    return Collected(_BUILD, [(tuple(parts[label] for label in _BUILD.labels), 1)])


def count_build(metrics: MetricsRegistry, git_version: str) -> None:
    """Report the version of this process, in place of an earlier one."""
    family, samples = build_info(git_version)
    metrics.numbers(family).replace((labels, 1) for labels, _ in samples)


_FIELDS: Final = {
    "git_version": "gitVersion",
    "git_commit": "gitCommit",
    "git_tree_state": "gitTreeState",
    "build_date": "buildDate",
    "go_version": "goVersion",
    "compiler": "compiler",
    "platform": "platform",
}
_BUILD: Final = gauge(
    "kubernetes_build_info",
    "[BETA] The version of the component: major and minor, git version and commit, Python, and platform.",
    *("major", "minor", *_FIELDS),
)

# --- health checks, at /metrics/slis

HEALTH_CHECK: Final = gauge(
    "kubernetes_healthcheck", "[STABLE] The result of a health check, 1 if it succeeded.", "name", "type"
)
HEALTH_CHECKS: Final = counter(
    "kubernetes_healthchecks_total",
    "[STABLE] The results of all health checks.",
    *("name", "type", "status"),
)
