"""The files of cgroup v2 in /sys/fs/cgroup that contain a container's resources. Pure."""

import math
from collections.abc import Iterator
from typing import Final

from mockube.apimachinery.quantity import MILLI, scaled_value_or
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.resource_limits import resources_of

PATH: Final = "/sys/fs/cgroup"
_CONSTANT: Final = (
    ("cgroup.controllers", b"cpuset cpu io memory hugetlb pids rdma misc\n"),
    ("cgroup.procs", b"1\n"),
    ("memory.high", b"max\n"),
    ("memory.low", b"0\n"),
    ("memory.min", b"0\n"),
    ("memory.oom.group", b"1\n"),
    ("memory.swap.max", b"0\n"),
    ("pids.max", b"max\n"),
)
"""The files that are the same in each container of a kubelet with its defaults."""
_PERIOD: Final = 100_000
_MIN_QUOTA: Final = 1000
_MIN_SHARES: Final = 2
_MAX_SHARES: Final = 262_144
"""MaxShares of pkg/kubelet/cm/helpers_linux.go."""
_SHARES_OF_CORE: Final = 1024


def cgroup_files(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files; a resized container has the resources in its status."""
    resources = resources_of(pod, container)
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    cpu_limit = scaled_value_or(limits.get("cpu"), 0, MILLI)
    quota = max(cpu_limit * _PERIOD // 1000, _MIN_QUOTA) if cpu_limit else "max"
    memory_limit = scaled_value_or(limits.get("memory"), 0)
    yield "cpu.max", f"{quota} {_PERIOD}\n".encode()
    cpu_request = scaled_value_or(requests.get("cpu"), 0, MILLI)
    yield "cpu.weight", f"{_cpu_weight(cpu_request or cpu_limit)}\n".encode()
    yield "memory.max", f"{memory_limit or 'max'}\n".encode()
    yield from _CONSTANT


def _cpu_weight(millicores: int) -> int:
    """Convert a request as runc does from 1.3.2 on: one core is 100, the least 1, the most 10,000."""
    shares = millicores * _SHARES_OF_CORE // 1000
    if shares <= _MIN_SHARES:
        return 1
    logarithm = math.log2(min(shares, _MAX_SHARES))
    return math.ceil(10 ** ((logarithm * logarithm + 125 * logarithm) / 612 - 7 / 34))
