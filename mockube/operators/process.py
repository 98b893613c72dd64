"""An operator under test: a command with a kubeconfig, in a process group of its own, of which nothing stays when it ends.

The kernel kills the command when the thread that started it ends, so the thread waits for the operator.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Protocol, Self

from msgspec import Struct

from mockube.component_base.launcher import ADOPT_ORPHANS, run_command
from mockube.component_base.operating_system import read_process_file, read_process_stat, shell_exit_code
from mockube.container_runtime.process.container_launcher import Launch
from mockube.container_runtime.process.container_launcher import run_command as run_container_command
from mockube.container_runtime.process.mount_namespace import Mounts
from mockube.failure import Failure, UsageError
from mockube.launch import IN_CLUSTER_VARIABLES, KUBECONFIG_VARIABLES

from .server_relay import ServerRelay

NO_VARIABLES: Final[Mapping[str, str]] = {}
GRACE_SECONDS: Final = 5.0
"""How long an operator may take to end after SIGTERM."""
KILL_SECONDS: Final = 10.0
"""How long a process may take to end after SIGKILL."""
HEAD_BYTES: Final = 16 << 10
TAIL_BYTES: Final = 64 << 10
"""A log has its first and its last bytes; what lies between is counted."""
MARKER: Final = "MOCKUBE_OPERATOR"
"""The environment variable by which all descendants of an operator are found, in whatever group they are."""
_MAX_KILLS: Final = 20
"""How often the remaining processes are looked for, as they may start others meanwhile."""
_WORKING: Final = (b"R", b"D")
"""The states of a thread that runs or could run, and of one that waits for a disk."""
_READ: Final = 1 << 16
_PIPE_SECONDS: Final = 1.0

_numbers = count(1)


class OperatorEnd(Struct, frozen=True, kw_only=True):
    """How an operator has ended."""

    code: int
    """The exit code, as in a shell: 128 plus the signal if a signal ended it."""
    ignored_term: bool = False
    """It did not end by SIGTERM within the grace period, and was killed."""


_INDENTS: Final = ("\t", "  ")
_HEADING: Final = re.compile(r"Usage|(?:created by )?[^\s:(]+(?:\(|$| in goroutine)")
"""What is before an indented line of a usage message, or the function before its place in a stack."""
_STACK: Final = re.compile(r"goroutine [0-9]+ \[|exit status [0-9]+$")


class OperatorLog:
    """The output of an operator: its first and its last bytes."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._head_bytes, self._tail_bytes = head_bytes, tail_bytes
        self._in_tail = 0
        self._lock = threading.Lock()
        self.size = 0
        """The number of bytes that were written."""

    def write(self, data: bytes) -> None:
        with self._lock:
            self.size += len(data)
            free = self._head_bytes - len(self._head)
            self._head += data[:free]
            rest = data[free:][-self._tail_bytes :]
            if rest:
                self._tail.append(rest)
                self._in_tail += len(rest)
            while self._in_tail - len(self._tail[0] if self._tail else b"") >= self._tail_bytes:
                self._in_tail -= len(self._tail.popleft())

    def text(self) -> str:
        with self._lock:
            tail = b"".join(self._tail)[-self._tail_bytes :]
            omitted = self.size - len(self._head) - len(tail)
            gap = f"\n... {omitted} bytes are left out ...\n".encode() if omitted else b""
            return (bytes(self._head) + gap + tail).decode(errors="replace")

    def last_line(self) -> str:
        """Return the last line that says something: no frame of a stack of Go, and no flag of a usage message."""
        lines = [line for line in self.text().splitlines() if line.strip()]
        for line, following in zip(reversed(lines), ["", *reversed(lines)], strict=False):
            is_heading = following.startswith(_INDENTS) and _HEADING.match(line)
            if not is_heading and not line.startswith(_INDENTS) and not _STACK.match(line):
                return line.strip()
        return lines[-1].strip() if lines else ""


class RunningOperator(Protocol):
    """An operator that was started, in whatever way."""

    pid: int
    log: OperatorLog

    @property
    def code(self) -> int | None:
        """The exit code, as in a shell; None while it runs."""

    def kill(self) -> OperatorEnd:
        """Kill it and all of its children, as a crash does."""

    def stop(self, grace: float = GRACE_SECONDS) -> OperatorEnd:
        """End it with SIGTERM, and with SIGKILL after the grace period."""


class OperatorProcess:
    """A command that runs. It is a context manager, which stops it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        kubeconfig: Path,
        environment: Mapping[str, str] = NO_VARIABLES,
        folder: Path | None = None,
        mounts: Mounts | None = None,
        server: str = "",
    ) -> None:
        """Start the command with KUBECONFIG, and with more variables, in a folder; raise Failure if it does not exist.

        Its mounts are those of a pod; without any it has this machine's files. With the URL of its API server it has a network of its own,
        in which there is only that.
        """
        self.command = [*command]
        self.log = OperatorLog()
        check_command(command, folder)
        self._marker = f"{os.getpid()}-{next(_numbers)}"
        self._relay = ServerRelay(server) if server else None
        try:
            self._process = self._start(
                operator_environment(kubeconfig, {**environment, MARKER: self._marker}), folder, mounts
            )
        except OSError:
            self._close_relay()
            raise
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self._reader = threading.Thread(
            target=_drain, args=(self._process.stdout, self.log), name="log of an operator", daemon=True
        )
        self._reader.start()
        self._end: OperatorEnd | None = None

    def _start(
        self, environment: Mapping[str, str], folder: Path | None, mounts: Mounts | None
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - it is the user's command
            run_command(command_in_namespaces(self.command, mounts, self._relay), ADOPT_ORPHANS),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            start_new_session=True,
            pass_fds=() if self._relay is None else (self._relay.channel.fileno(),),
        )

    @property
    def code(self) -> int | None:
        code = self._process.poll()
        return None if code is None else shell_exit_code(code)

    def pids(self) -> Sequence[int]:
        """Return its processes, such as a shell and what it has started; of Linux only."""
        return [*marked_processes(self._marker)]

    def wait(self, seconds: float) -> int | None:
        """Wait for its end, and return the exit code; None if it still runs after these seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.code

    def kill(self) -> OperatorEnd:
        return self.stop(grace=0)

    def stop(self, grace: float = GRACE_SECONDS) -> OperatorEnd:
        if self._end is None:
            self._end = self._stop(grace)
        return self._end

    def _stop(self, grace: float) -> OperatorEnd:
        children: Mapping[int, str] = {}
        if grace and self.code is None:
            children = descendants(self.pid)
            self._send(signal.SIGTERM)
            self.wait(grace)
        ignored_term = self.code is None and grace > 0
        children = {**children, **descendants(self.pid)}
        self._send(signal.SIGKILL)
        try:
            code = self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            raise cannot_be_killed(shlex.join(self.command), self.pid) from None
        kill_processes(children)  # those that have cleared their environment have no marker
        kill_marked(self._marker)
        self._reader.join(_PIPE_SECONDS)
        self._close_relay()
        return OperatorEnd(code=shell_exit_code(code), ignored_term=ignored_term)

    def _close_relay(self) -> None:
        if self._relay is not None:
            self._relay.close()

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def command_in_namespaces(
    command: Sequence[str], mounts: Mounts | None = None, relay: ServerRelay | None = None
) -> list[str]:
    """Return the command that starts another one with mounts and a network of its own, as far as it has them."""
    if mounts is None and relay is None:
        return [*command]
    launch = Launch(
        mounts=() if mounts is None else mounts.fields(),
        network=None if relay is None else (*relay.address, relay.channel.fileno()),
    )
    return run_container_command(command, launch)


def cannot_be_killed(name: str, pid: int) -> Failure:
    return Failure(f"{name}: process {pid} cannot be killed: does it run as another user?")


def check_command(command: Sequence[str], folder: Path | None = None) -> None:
    """Raise UsageError for a command that cannot be started."""
    if not command or not command[0]:
        raise UsageError("no command for the operator")
    name = command[0]
    has_path = os.sep in name
    place = Path(folder or ".", name)
    if not (os.access(place, os.X_OK) and place.is_file() if has_path else shutil.which(name)):
        is_there = has_path and place.exists()
        raise UsageError(f"{name}: {'not an executable file' if is_there else 'command not found'}")


def operator_environment(kubeconfig: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an operator: that of this process, without the cluster that this process runs in."""
    hidden = {*IN_CLUSTER_VARIABLES}
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**variables, **dict.fromkeys(KUBECONFIG_VARIABLES, str(kubeconfig)), **more}


def end_message(operator: RunningOperator, command: Sequence[str] = ()) -> str:
    """Return why an operator that has ended by itself did so: its exit code and its last line."""
    name = shlex.join(command) or "the operator"
    line = operator.log.last_line()
    return f"{name} exited with code {operator.code}{f': {line}' if line else ', and printed nothing'}"


def marked_processes(marker: str, pids: Iterable[int] | None = None) -> Iterator[int]:
    """Return the processes with a value of the marker in their environment, of all or of some. None is found but on Linux."""
    variable = f"{MARKER}={marker}".encode()
    for pid in _all_pids() if pids is None else pids:
        with suppress(OSError):  # it has ended, or is of another user
            if variable in read_process_file(pid, "environ").split(b"\0"):
                yield pid


def _all_pids() -> Iterator[int]:
    with suppress(FileNotFoundError):
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - names are enough


def kill_marked(marker: str, server: int | None = None) -> None:
    """Kill all processes with a value of the marker, also those that have left the group; `server` is the one that adopts them."""
    for _ in range(_MAX_KILLS):
        found = [*marked_processes(marker, None if server is None else descendants(server))]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def is_working(pid: int) -> bool:
    """Return whether a thread of a process or of its children runs or waits for a processor, and not for something. On Linux only."""
    with suppress(OSError):  # it has ended
        for thread in _threads(pid):
            state = read_process_file(pid, f"task/{thread}/stat").rpartition(b")")[2]
            if state.lstrip().startswith(_WORKING):
                return True
        return any(map(is_working, _children(pid)))
    return False


def descendants(pid: int) -> Mapping[int, str]:
    """Return the children of a process, their children and so on, with the times of their starts. None is found but on Linux."""
    found: dict[int, str] = {}
    remaining = [*_children(pid)]
    while remaining:
        child = remaining.pop()
        with suppress(OSError):  # it has ended
            found[child] = read_process_stat(child).started
            remaining += _children(child)
    return found


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError):  # it has ended
        for thread in _threads(pid):
            yield from map(int, read_process_file(pid, f"task/{thread}/children").split())


def _threads(pid: int) -> Sequence[str]:
    return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - as above


def kill_processes(processes: Mapping[int, str]) -> None:
    """Kill processes with the times of their starts: another one may have the same id by now."""
    for pid, started in processes.items():
        with suppress(OSError):
            if read_process_stat(pid).started == started:
                os.kill(pid, signal.SIGKILL)


def _drain(pipe: BinaryIO, log: OperatorLog) -> None:
    with pipe:
        while data := os.read(pipe.fileno(), _READ):
            log.write(data)
