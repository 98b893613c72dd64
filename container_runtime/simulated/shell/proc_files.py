"""The files in /proc about the whole system, with the values that programs such as free and nproc print. Pure."""

from collections.abc import Callable, Mapping
from typing import Final

from .disks import mounted_disks
from .process import Host


def mount_lines(host: Host) -> list[tuple[str, str, str, str]]:
    """Return the source, the path, the type and the options of each mount."""
    mounts = [
        (disk.source, disk.path, disk.kind, f"{'ro' if disk.is_read_only else 'rw'},relatime")
        for disk in mounted_disks(host.files, host.memory_bytes)
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


def _mount_info(host: Host) -> str:
    """Return the mounts with their ids; each is in the root file system, which is the first."""
    return "".join(
        f"{1000 + index} {1000 if index else 999} 0:{100 + index} / {path} {options} - {kind} {source} {options.partition(',')[0]}\n"
        for index, (source, path, kind, options) in enumerate(mount_lines(host))
    )


def _statistics(host: Host) -> str:
    """Return the times of the processors, which are idle, in hundredths of a second."""
    idle = round(host.seconds_up() * 100)
    names = ["cpu", *(f"cpu{index}" for index in range(host.cpus))]
    times = (
        f"{name:<5}0 0 0 {idle * (1 if index else host.cpus)} 0 0 0 0 0 0\n"
        for index, name in enumerate(names)
    )
    begin = round(host.now_running(is_shown=True).timestamp() - host.seconds_up())
    return (
        "".join(times)
        + f"ctxt 0\nbtime {begin}\nprocesses {host.first_pid}\nprocs_running 1\nprocs_blocked 0\n"
    )


_NETWORK_DEVICES: Final = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
)


def _network_devices(_: Host) -> str:
    return _NETWORK_DEVICES + "".join(f"{name:>6}:{' 0' * 16}\n" for name in ("lo", "eth0"))


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
    "/proc/self/mountinfo": _mount_info,
    "/proc/1/mountinfo": _mount_info,
    "/proc/stat": _statistics,
    "/proc/net/dev": _network_devices,
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
