"""A process that the launcher has started in another namespace of processes: a child of this process that asyncio does not know."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

KINDS: Final = ("user", "mnt", "net", "uts", "pid")
"""The namespaces that a command enters to join a container, in an order in which each one permits the next."""
_READ: Final = 256


class NamespacedProcess:
    def __init__(self, pid: int, *, ends_group: bool, on_exit: Callable[[], None]) -> None:
        """`ends_group`: the rest of its process group ends with it."""
        self.pid = pid
        self.returncode: int | None = None
        self._ends_group = ends_group
        self._on_exit = on_exit
        loop = asyncio.get_running_loop()
        self._exit: asyncio.Future[int] = loop.create_future()
        try:
            self._file = os.pidfd_open(pid)
        except OSError:  # too many open files
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        loop.add_reader(self._file, self._reap)

    async def wait(self) -> int:
        return await asyncio.shield(self._exit)

    def kill(self) -> None:
        """Kill the process and its group, which it has not from its first moment."""
        if self.returncode is None:
            for send in (os.kill, os.killpg):
                with suppress(ProcessLookupError, PermissionError):
                    send(self.pid, signal.SIGKILL)

    def _reap(self) -> None:
        if self._ends_group:  # as long as its number is not free for others
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return
        asyncio.get_running_loop().remove_reader(self._file)
        os.close(self._file)
        self.returncode = os.waitstatus_to_exitcode(status)
        self._exit.set_result(self.returncode)
        self._on_exit()


class StartStatus:
    """The pipe at which the launcher writes the number of the process, and which ends when that has executed its command, or itself.

    The process writes an empty line before it executes its command, perhaps sooner than the launcher writes its number.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._text = b""
        self._pid: asyncio.Future[int] = self._loop.create_future()
        self.end: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._read_end, self._read)

    async def pid(self) -> int:
        """Close the end of the pipe that the launcher has; return the number of the process, or 0 if it does not start."""
        os.close(self.write_end)
        return await asyncio.shield(self._pid)

    def close(self) -> None:
        """Close the pipe that no launcher has."""
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        os.close(self.write_end)

    def _read(self) -> None:
        data = os.read(self._read_end, _READ)
        self._text += data
        number = next(filter(None, self._text.split(b"\n")[:-1]), b"")
        if not self._pid.done() and (number or not data):
            self._pid.set_result(int(number or b"0"))
        if not data:
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)
            self.end.set_result(None)


@contextmanager
def open_namespaces(pid: int, kinds: tuple[str, ...] = KINDS) -> Iterator[list[int]]:
    """Open the namespaces of a process that differ from those of this process; none for the process 0."""
    with ExitStack() as stack:
        files = []
        for kind in kinds if pid else ():
            path = Path(f"/proc/{pid}/ns/{kind}")
            if path.readlink() != Path(f"/proc/self/ns/{kind}").readlink():
                files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
                stack.callback(os.close, files[-1])
        yield files
