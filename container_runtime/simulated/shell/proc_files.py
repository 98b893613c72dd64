"""The files in /proc about the whole system, with the values that programs such as free and nproc print. Pure."""

from collections.abc import Callable, Mapping
from typing import Final

from .disks import mounted_disks
from .process import Host


def mount_lines(host: Host) -> list[tuple[str, str, str, str]]:
    """Return the source, the path, the type and the options of each mount."""
    mounts = [
        (disk.source, disk.path, disk.kind, f"{'ro' if disk.is_read_only else 'rw'},relatime")
        for disk in mounted_disks(host.files)
    ]
    return [
        mounts[0],
        ("proc", "/proc", "proc", "rw,nosuid,nodev,noexec,relatime"),
        ("tmpfs", "/dev", "tmpfs", "rw,nosuid,size=65536k,mode=755"),
        ("cgroup", "/sys/fs/cgroup", "cgroup2", "ro,nosuid,nodev,noexec,relatime"),
        *mounts[1:],
    ]


def _mounts(host: Host) -> str:
    return "".join(f"{' '.join(line)} 0 0\n" for line in mount_lines(host))


def _memory_info(host: Host) -> str:
    total = host.memory_bytes // 1024
    amounts = {
        "MemTotal": total, "MemFree": total, "MemAvailable": total, "Buffers": 0, "Cached": 0, "SwapCached": 0, "SwapTotal": 0, "SwapFree": 0,
    }  # fmt: skip
    return "".join(f"{f'{name}:':<15}{amount:>9} kB\n" for name, amount in amounts.items())


def _cpu_info(host: Host) -> str:
    return "".join(
        f"processor\t: {index}\nvendor_id\t: mockube\nmodel name\t: simulated\ncpu cores\t: {host.cpus}\n\n"
        for index in range(host.cpus)
    )


def _uptime(host: Host) -> str:
    seconds = host.seconds_up()
    return f"{seconds:.2f} {seconds * host.cpus:.2f}\n"


_FILES: Final[Mapping[str, Callable[[Host], str]]] = {
    "/proc/mounts": _mounts,
    "/proc/self/mounts": _mounts,
    "/proc/1/mounts": _mounts,
    "/proc/meminfo": _memory_info,
    "/proc/cpuinfo": _cpu_info,
    "/proc/uptime": _uptime,
    "/proc/loadavg": lambda host: f"0.00 0.00 0.00 1/{len(host.other_processes) + 1} 7\n",
    "/proc/version": lambda _: "Linux version mockube (simulated) #1 SMP\n",
}
PATHS: Final = tuple(_FILES)


def read_proc(host: Host, path: str) -> bytes | None:
    """Return the content of a file about the system; None for another path."""
    text_of = _FILES.get(path)
    return None if text_of is None else text_of(host).encode()
