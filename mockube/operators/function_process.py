"""Operators that are a function of Python: a process of its own for each run, forked from one that has imported everything.

An operator in Python takes 0.3 seconds to start, most of it for imports. The server of forks does these once. It is forked before
the cluster starts, when this process has no threads whose locks could stay held.
"""

import gc
import os
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct

from mockube.component_base.launcher import adopt_orphans, die_with_parent
from mockube.component_base.operating_system import shell_exit_code
from mockube.container_runtime.process import mount_namespace, namespaces
from mockube.container_runtime.process.mount_namespace import Mounts
from mockube.failure import Failure

from .process import (
    GRACE_SECONDS,
    KILL_SECONDS,
    MARKER,
    OperatorEnd,
    OperatorLog,
    cannot_be_killed,
    descendants,
    kill_marked,
    kill_processes,
    operator_environment,
)

OperatorFunction = Callable[[str], Any]
"""Runs an operator with the path of a kubeconfig, until the process ends."""
_READ: Final = 1 << 16
_ORDER: Final = b"order"
_LEAST_SECONDS: Final = 0.05
_START_SECONDS: Final = 10.0


class _Start(Struct, frozen=True):
    number: int
    environment: dict[str, str]
    kubeconfig: str
    mounts: tuple[str, list[tuple[str, str, bool, tuple[str, ...]]], tuple[str, ...]] | None = None
    """The arguments of `mount_namespace.enter`; None for the files of this machine."""


class _Event(Struct, frozen=True):
    """The process of an order has started, or has ended with a code."""

    number: int
    pid: int
    code: int | None = None


class FunctionServer:
    """The process that forks the operators. It ends with `close`, and when this process ends."""

    def __init__(self, main: OperatorFunction) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sys.stdout.flush()
        sys.stderr.flush()
        owner = os.getpid()
        with warnings.catch_warnings():
            # From Python 3.12 on, it warns of other threads. Those of a test do not exist in the new process.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if not self.pid:
            self._socket.close()
            _serve(theirs, main, owner)
        theirs.close()
        self._codes: dict[int, int] = {}
        self._started: dict[int, int] = {}
        self._late: set[int] = set()
        """The orders whose processes nobody waits for any more."""
        self._changed = threading.Condition()
        self._lock = threading.Lock()
        self._number = 0
        self._reader = threading.Thread(target=self._read, name="ends of operators", daemon=True)
        self._reader.start()

    def start(
        self, kubeconfig: Path, environment: Mapping[str, str], mounts: Mounts | None = None
    ) -> "FunctionProcess":
        with self._lock:
            self._number += 1
            marker = f"{os.getpid()}-f{self._number}"
            variables = operator_environment(kubeconfig, {**environment, MARKER: marker})
            ours, output = os.pipe()
            try:
                fields: Any = None if mounts is None else mounts.fields()
                self._send(_Start(self._number, variables, str(kubeconfig), fields), output)
                pid = self._wait_for_start(self._number)
            except BaseException:
                os.close(ours)
                raise
        return FunctionProcess(self, pid, ours, marker)

    def _send(self, order: _Start, output: int) -> None:
        """Send an order in a file, because an environment may be larger than a packet, and close our copy of the output."""
        try:
            with TemporaryFile() as file:
                file.write(msgspec.msgpack.encode(order))
                file.seek(0)
                socket.send_fds(self._socket, [_ORDER], [file.fileno(), output])
        finally:
            os.close(output)

    def _wait_for_start(self, number: int) -> int:
        with self._changed:
            if self._changed.wait_for(lambda: number in self._started, _START_SECONDS):
                return self._started.pop(number)
            self._late.add(number)
        raise Failure("the process that starts operators does not answer")

    def code_of(self, pid: int) -> int | None:
        with self._changed:
            return self._codes.get(pid)

    def wait(self, pid: int, seconds: float) -> int | None:
        with self._changed:
            self._changed.wait_for(lambda: pid in self._codes, seconds)
            return self._codes.get(pid)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _read(self) -> None:
        while data := self._socket.recv(_READ):
            event = msgspec.msgpack.decode(data, type=_Event)
            with self._changed:
                if event.code is None:
                    self._codes.pop(event.pid, None)  # that of an earlier process with this id
                    self._note_start(event)
                else:
                    self._codes[event.pid] = event.code
                self._changed.notify_all()

    def _note_start(self, event: _Event) -> None:
        if event.number not in self._late:
            self._started[event.number] = event.pid
            return
        self._late.remove(event.number)
        with suppress(ProcessLookupError):
            os.kill(event.pid, signal.SIGKILL)


class FunctionProcess:
    """An operator that runs."""

    def __init__(self, server: FunctionServer, pid: int, output: int, marker: str) -> None:
        self._server, self.pid, self._marker = server, pid, marker
        self.log = OperatorLog()
        self._reader = threading.Thread(
            target=self._drain, args=(output,), name="log of an operator", daemon=True
        )
        self._reader.start()
        self._end: OperatorEnd | None = None

    @property
    def code(self) -> int | None:
        return self._server.code_of(self.pid)

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
            self._server.wait(self.pid, grace)
        ignored_term = self.code is None and grace > 0
        children = {**children, **descendants(self.pid)}
        self._send(signal.SIGKILL)
        code = self._server.wait(self.pid, KILL_SECONDS)
        kill_processes(children)  # those that were forked have no marker
        kill_marked(self._marker, self._server.pid)
        self._reader.join(_LEAST_SECONDS)
        if code is None:
            raise cannot_be_killed("the function of the operator", self.pid)
        return OperatorEnd(code=code, ignored_term=ignored_term)

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                if self.code is None:  # it has no group of its own yet
                    os.kill(self.pid, number)

    def _drain(self, output: int) -> None:
        try:
            while data := os.read(output, _READ):
                self.log.write(data)
        finally:
            os.close(output)


def _serve(control: socket.socket, main: OperatorFunction, owner: int) -> NoReturn:
    """Fork an operator for each order, and report the ends, until the other side closes."""
    try:
        die_with_parent(owner)
        adopt_orphans()  # so that what operators have started and leave ends with this process
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        awake, wake = socket.socketpair()
        awake.setblocking(False)  # noqa: FBT003 - the name of its argument is not public
        wake.setblocking(False)  # noqa: FBT003 - as above
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        gc.freeze()  # a collection in an operator would copy all memory that is shared with this process
        _loop(control, awake, main)
    except BaseException:  # noqa: BLE001 - nothing of the parent may run in this process
        traceback.print_exc()
    finally:
        kill_processes(descendants(os.getpid()))
        os._exit(0)


def _loop(control: socket.socket, awake: socket.socket, main: OperatorFunction) -> None:
    import select  # noqa: PLC0415 - only this process needs it

    operators: dict[int, int] = {}  # the numbers of their orders, by their ids
    while True:
        readable, _, _ = select.select([control, awake], [], [])
        if awake in readable:
            with suppress(BlockingIOError):
                awake.recv(_READ)
            _report_ends(control, operators)
        if control in readable:
            data, descriptors, _, _ = socket.recv_fds(control, _READ, 2)
            if not data:
                return
            with os.fdopen(descriptors[0], "rb") as file:
                order = msgspec.msgpack.decode(file.read(), type=_Start)
            server = os.getpid()
            pid = os.fork()
            if not pid:
                _run(order, descriptors[1], main, server)
            os.close(descriptors[1])
            operators[pid] = order.number
            control.send(msgspec.msgpack.encode(_Event(order.number, pid)))


def _report_ends(control: socket.socket, operators: dict[int, int]) -> None:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            if pid not in operators:  # an orphan
                continue
            code = shell_exit_code(os.waitstatus_to_exitcode(status))
            control.send(msgspec.msgpack.encode(_Event(operators.pop(pid), pid, code)))


def _run(order: _Start, output: int, main: OperatorFunction, server: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        die_with_parent(server)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        os.close(output)
        sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False)
        if order.mounts is not None:
            namespaces.unshare(namespaces.NEW_MOUNTS)
            mount_namespace.enter(namespaces.mount, *order.mounts, has_processes=False)
        os.environ.clear()
        os.environ.update(order.environment)
        main(order.kubeconfig)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - it is the operator's, and ends it
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(code)
