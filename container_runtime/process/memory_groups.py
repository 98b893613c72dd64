"""The memory limits of containers that are processes: a cgroup for each, where the machine lets this process make one.

Upstream: the memory controllers of Linux (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst), as runc uses them.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

_NAME: Final = "mockube-"
_PROCESSES: Final = "cgroup.procs"
_CONTROLLER: Final = "memory"
_LIMITS: Final = (
    {"memory.limit_in_bytes": "{}", "memory.memsw.limit_in_bytes": "{}"},
    {"memory.max": "{}", "memory.swap.max": "0", "memory.oom.group": "1"},
)
"""What is written into the files of a group of version 1 and 2; a machine without swap has not all of them."""
_KILLS_1: Final = "memory.oom_control"
_KILLS_2: Final = "memory.events"
"""The file of a group of version 1 and 2 that counts its processes which were killed."""
_REGISTRATIONS: Final = "cgroup.event_control"
"""The file of a group of version 1 in which events are ordered: a number of an eventfd, and that of an open file."""


class MemoryGroup:
    """A cgroup with a memory limit."""

    def __init__(self, folder: Path) -> None:
        self.processes = str(folder / _PROCESSES)
        """The file into which a process writes 0 to enter the group."""
        self._folder = folder
        self._is_first = (folder / _KILLS_1).exists()
        self._was_out_of_memory = False

    @contextmanager
    def killed_as_a_whole(self) -> Iterator[None]:
        """Kill all of its processes when the kernel kills one for lack of memory, which in version 2 the kernel does."""
        if not self._is_first:
            yield
            return
        loop, event = asyncio.get_running_loop(), os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            with (self._folder / _KILLS_1).open() as control:
                (self._folder / _REGISTRATIONS).write_text(f"{event} {control.fileno()}")
            loop.add_reader(event, self._kill, event)
            yield
        finally:
            loop.remove_reader(event)
            os.close(event)

    def _kill(self, event: int) -> None:
        os.eventfd_read(event)
        self._was_out_of_memory = True
        for process in Path(self.processes).read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)

    def has_killed(self) -> bool:
        """Return whether the kernel has killed one of its processes for lack of memory."""
        lines = (self._folder / (_KILLS_1 if self._is_first else _KILLS_2)).read_text().split("\n")
        return self._was_out_of_memory or any(
            line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines
        )

    def remove(self) -> None:
        """Remove the group; one that a process has not left yet is removed by the next manager."""
        with suppress(OSError):
            self._folder.rmdir()


class MemoryGroups:
    """Makes groups below the cgroup of this process, or one above it."""

    def __init__(self, process: Path = Path("/proc/self")) -> None:
        self._parent = _find_parent(process)
        if self._parent is not None:
            _remove_abandoned(self._parent[0])

    def limit(self, size: int) -> MemoryGroup | None:
        """Return a new group whose processes have so many bytes of memory together; None if the machine does not allow that."""
        if self._parent is None:
            return None
        parent, limits = self._parent
        folder = Path(mkdtemp(prefix=f"{_NAME}{os.getpid()}-", dir=parent))
        for name, text in limits.items():
            if (path := folder / name).exists():
                path.write_text(text.format(size))
        return MemoryGroup(folder)


def _find_parent(process: Path) -> tuple[Path, dict[str, str]] | None:
    """Return a cgroup of a process in which it may make others with limits, and the files of these."""
    try:
        mounts = (process / "mountinfo").read_text().splitlines()
        groups = (process / "cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return None
    for version, folder, top in _own_groups(mounts, groups):
        candidates = [folder] if version == 1 else [folder, *folder.parents]
        for candidate in candidates:
            if candidate == top.parent:
                break
            if os.access(candidate, os.W_OK) and _has_limits(version, candidate):
                return candidate, _LIMITS[version - 1]
    return None


def _own_groups(mounts: list[str], groups: list[str]) -> Iterator[tuple[int, Path, Path]]:
    """Yield the version and the folder of each cgroup of a process with a controller of memory, and the folder of the root."""
    paths = {names: path for _, names, path in (line.split(":", 2) for line in groups)}
    for line in mounts:
        fields, _, kinds = line.partition(" - ")
        _, _, _, root, top, *_ = fields.split(" ")
        kind, _, options = kinds.split(" ", 2)
        is_first = kind == "cgroup" and _CONTROLLER in options.split(",")
        path = paths.get(_CONTROLLER if is_first else "") if is_first or kind == "cgroup2" else None
        if path is not None:
            relative = path.removeprefix(root.rstrip("/")).lstrip("/")
            yield (1 if is_first else 2), Path(top) / relative, Path(top)


def _has_limits(version: int, folder: Path) -> bool:
    """Return whether new groups in a cgroup have limits of memory, and processes of its own group may enter them."""
    if version == 1:
        return True
    controllers = folder / "cgroup.subtree_control"
    return os.access(folder / _PROCESSES, os.W_OK) and _CONTROLLER in controllers.read_text().split()


def _remove_abandoned(parent: Path) -> None:
    """Remove the groups of managers that were killed."""
    for folder in parent.glob(f"{_NAME}*"):
        if not Path(f"/proc/{folder.name.removeprefix(_NAME).partition('-')[0]}").exists():
            with suppress(OSError):  # a process of it lives, or another manager has removed it
                folder.rmdir()
