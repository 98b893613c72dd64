"""The modules of simulated Python scripts for their container: os, sys, signal, threading and socket, and its files."""

import posixpath
from collections.abc import Callable
from sys import getsizeof
from typing import Any, Final

from mockube.container_runtime.simulated.shell import limits as shell_limits
from mockube.container_runtime.simulated.shell.process import Child, Input, Run, WaitUntil
from mockube.container_runtime.simulated.shell.scheduling import TooManyProcesses
from mockube.container_runtime.simulated.shell.signals import SIGNALS
from mockube.container_runtime.simulated.shell.streams import deliver
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from . import costs, limits
from .builtins import exit_error, read_line
from .clocks import plain
from .errors import PythonError, Stop, error, system_error
from .interpreter import PythonInterpreter
from .operations import is_native
from .values import END, Builtin, BulkText, Code, Iterator, Module, NativeObject, Value, type_name

Keywords = dict[str, Value]
_FILE: Final = 3_000
"""The nanoseconds in which a file is found."""


class Thread(NativeObject):
    type_name = "Thread"
    child: Child
    is_daemon = False

    def has_ended(self) -> bool:
        return self.child.code is not None


# --- files


def open_file(machine: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> "FileObject":
    name = arguments[0]
    mode = arguments[1] if len(arguments) > 1 else keywords.get("mode", "r")
    if isinstance(name, NativeObject):
        name = name.members.get("_path", "")
    if not isinstance(name, str):
        raise error("TypeError", f"expected str, bytes or os.PathLike object, not {type_name(name)}")
    return FileObject(machine, name, mode)


class FileObject(NativeObject):
    type_name = "TextIOWrapper"

    def __init__(self, machine: PythonInterpreter, name: str, mode: str) -> None:
        super().__init__()
        self._machine = machine
        self._path = machine.process.path(name)
        self._is_binary = "b" in mode
        self._writes = any(letter in mode for letter in "wax+")
        self._position = 0
        self._is_closed = False
        files = machine.process.host.files
        try:
            if "x" in mode and files.exists(self._path):
                raise FileError("File exists")  # noqa: TRY301 - as the one of the file system
            if "w" in mode or "x" in mode or ("a" in mode and not files.exists(self._path)):
                self._store(b"", append=False)
            self._data = self._load(name) if "r" in mode or "+" in mode else b""
        except FileError as problem:
            raise system_error(str(problem), name) from None
        self.members = {name: Builtin(name, call) for name, call in self._methods().items()}
        self.members |= {"name": name, "mode": mode}

    def _load(self, name: str) -> bytes:
        files = self._machine.process.host.files
        if (
            not files.exists(self._path)
            and files.unknown.may_exist(self._path)
            and not files.unknown.is_expected(self._path)
        ):
            raise system_error("No such file or directory", name)
        return files.read(self._path)

    def _methods(self) -> dict[str, Callable[..., Any]]:
        return {
            "read": self._read, "readline": self._read_line, "readlines": self._read_lines, "write": self._write,
            "writelines": self._write_lines, "flush": lambda *_: None, "close": self._close, "__iter__": self._lines,
            "__enter__": lambda *_: self, "__exit__": self._close, "fileno": lambda *_: 3, "seek": self._seek,
            "readable": lambda *_: not self._writes, "writable": lambda *_: self._writes, "tell": lambda *_: self._position,
        }  # fmt: skip

    def _stored(self) -> int:
        """Return how many bytes are copied when something is appended."""
        files = self._machine.process.host.files
        return len(files.entry(self._path).data or b"") if files.exists(self._path) else 0

    def _store(self, data: bytes, *, append: bool, zeros: int = 0) -> None:
        host = self._machine.process.host
        host.changes += 1
        modified = host.now_running(is_shown=True).timestamp()
        try:
            host.files.write(self._path, data, append=append, modified=modified, zeros=zeros)
        except FileError as problem:
            raise system_error(str(problem), self._path) from None

    def _check_open(self) -> None:
        if self._is_closed:
            raise error("ValueError", "I/O operation on closed file.")

    def _result(self, data: bytes) -> Value:
        self._position += len(data)
        self._machine.check_length(len(data))
        self._machine.charge(costs.CHARACTER * len(data))
        return data if self._is_binary else data.decode("utf-8", "replace")

    def _read(self, _: PythonInterpreter, arguments: list[Value], __: Keywords) -> Value:
        self._check_open()
        size = (
            arguments[0] if arguments and arguments[0] is not None and arguments[0] >= 0 else len(self._data)
        )
        return self._result(self._data[self._position : self._position + size])

    def _read_line(self, *_: Any) -> Value:
        self._check_open()
        end = self._data.find(b"\n", self._position) + 1
        return self._result(self._data[self._position : end or len(self._data)])

    def _read_lines(self, *_: Any) -> list[Value]:
        data, self._position = self._data[self._position :], len(self._data)
        self._machine.charge(2 * costs.CALLED * data.count(b"\n") + costs.CHARACTER * len(data))
        return [
            line if self._is_binary else line.decode("utf-8", "replace")
            for line in data.splitlines(keepends=True)
        ]

    def _lines(self, *_: Any) -> Iterator:
        def step() -> Code:
            return self._read_line() or END
            yield

        return Iterator("file", step)

    def _write(self, machine: PythonInterpreter, arguments: list[Value], _: Keywords) -> int:
        self._check_open()
        (value,) = arguments
        machine.charge(costs.CHARACTER * costs.size(value) + costs.ELEMENT / 8 * self._stored())
        if not self._writes:
            raise error("ValueError", "not writable")
        if isinstance(value, BulkText):
            if self._is_binary and isinstance(value.unit, bytes) and (value.is_random or not any(value.unit)):
                self._store(b"", append=True, zeros=value.length)
                return value.length
            value = machine.text_of_bulk(value)
        if isinstance(value, str) is self._is_binary:
            message = (
                "a bytes-like object is required, not 'str'"
                if self._is_binary
                else "write() argument must be str, not bytes"
            )
            raise error("TypeError", message)
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
        self._store(data, append=True)
        return len(value)

    def _write_lines(self, machine: PythonInterpreter, arguments: list[Value], _: Keywords) -> Code:
        for line in (yield machine.collect(arguments[0])):
            self._write(machine, [line], {})
        return None

    def _seek(self, _: PythonInterpreter, arguments: list[Value], __: Keywords) -> int:
        self._position = len(self._data) if arguments[1:] == [2] else max(int(arguments[0]), 0)
        return self._position

    def _close(self, *_: Any) -> None:
        self._is_closed = True


# --- sys


def output_object(machine: PythonInterpreter, descriptor: int) -> NativeObject:
    def write(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        value = arguments[0]
        if isinstance(value, BulkText):
            value = machine.text_of_bulk(value)
        if not isinstance(value, costs.TEXTS):
            raise error("TypeError", f"write() argument must be str, not {type_name(value)}")
        machine.charge(costs.CHARACTER * len(value))
        text = value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")
        yield machine.write(descriptor, text)
        return len(value)

    def flush(*_: Any) -> Code:
        return machine.flush()

    result = NativeObject(
        {"write": Builtin("write", write), "flush": Builtin("flush", flush), "encoding": "utf-8"}
    )
    result.type_name = "TextIOWrapper"
    result.members |= {
        "isatty": plain("isatty", lambda: machine.process.host.has_terminal),
        "reconfigure": Builtin("reconfigure", lambda *_: machine.unbuffer()),
        "fileno": plain("fileno", lambda: descriptor),
        "buffer": result,
    }
    return result


def input_object(machine: PythonInterpreter) -> NativeObject:
    def read(*_: Any) -> Code:
        data = bytearray()
        while (block := (yield Input(4096))) and len(data) < shell_limits.MAX_INPUT:
            data += block
        return data.decode("utf-8", "replace")

    def lines(*_: Any) -> Iterator:
        def step() -> Code:
            return (yield read_line()) or END

        return Iterator("TextIOWrapper", step)

    return NativeObject({
        "read": Builtin("read", read), "readline": Builtin("readline", lambda *_: read_line()),
        "__iter__": Builtin("__iter__", lines), "isatty": plain("isatty", lambda: machine.process.host.has_terminal),
    })  # fmt: skip


def sys_module(machine: PythonInterpreter) -> dict[str, Value]:
    def leave(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> None:
        raise exit_error(arguments[0] if arguments else None)

    def info(*_: Any) -> tuple[Value, ...]:
        value = machine.handled
        return (None, None, None) if value is None else (value.cls, value, None)

    version = machine.version
    text = ".".join(map(str, version))
    numbers = NativeObject({"major": version[0], "minor": version[1], "micro": version[2]})
    whole = (*version, "final", 0)
    numbers.members["__getitem__"] = Builtin("__getitem__", lambda _, arguments, __: whole[arguments[0]])
    return {
        "argv": machine.arguments, "exit": Builtin("exit", leave), "stdout": output_object(machine, 1),
        "stderr": output_object(machine, 2), "stdin": input_object(machine), "version": f"{text} (main)",
        "version_info": numbers, "platform": "linux", "path": [machine.folder], "modules": {}, "maxsize": 2**63 - 1,
        "executable": "/usr/local/bin/python3", "byteorder": "little", "exc_info": Builtin("exc_info", info),
        "getsizeof": Builtin("getsizeof", lambda _, arguments, __: _size_of(arguments[0])),
        "getrecursionlimit": plain("getrecursionlimit", lambda: 1000), "setrecursionlimit": plain("setrecursionlimit", lambda _: None),
        "getdefaultencoding": plain("getdefaultencoding", lambda: "utf-8"),
    }  # fmt: skip


def _size_of(value: Value) -> int:
    if isinstance(value, BulkText):
        return value.length + 49
    return getsizeof(value) if isinstance(value, (int, float, str, bytes, list, dict, tuple, set)) else 48


# --- os


def os_module(machine: PythonInterpreter) -> dict[str, Value]:  # noqa: C901, PLR0915 - one function for each of the module
    host, process = machine.process.host, machine.process
    files = host.files

    def checked(name: str, function: Callable[..., Any]) -> Builtin:
        def call(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Any:
            for argument in (*arguments, *keywords.values()):
                if not is_native(argument):
                    raise error(
                        "TypeError", f"expected str, bytes or os.PathLike object, not {type_name(argument)}"
                    )
                machine.charge(costs.CALLED * costs.size(argument))
            try:
                return function(*arguments, **keywords)
            except FileError as problem:
                raise system_error(str(problem), arguments[0] if arguments else "") from None

        return Builtin(name, call)

    def make_folders(name: str, mode: int = 0o777, exist_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as Python's
        del mode
        if files.exists(process.path(name)) and not exist_ok:
            raise FileError("File exists")
        host.changes += 1
        files.make_directory(
            process.path(name), parents=True, modified=host.now_running(is_shown=True).timestamp()
        )

    def make_folder(name: str, mode: int = 0o777) -> None:
        del mode
        host.changes += 1
        files.make_directory(process.path(name), modified=host.now_running(is_shown=True).timestamp())

    def remove(name: str) -> None:
        host.changes += 1
        files.remove(process.path(name))

    def leave(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> None:
        raise Stop(int(arguments[0]))

    def random_bytes(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        machine.own_changes += 1
        (count,) = arguments
        if not isinstance(count, int):
            raise error("TypeError", f"'{type_name(count)}' object cannot be interpreted as an integer")
        if count <= shell_limits.MAX_VALUE:
            machine.charge(costs.CHARACTER * count)
            return machine.random.randbytes(count)
        result = yield machine.bulk(machine.random.randbytes(limits.MAX_TEXT), count, is_exact=False)
        result.is_random = True
        return result

    def kill(pid: int, number: int) -> None:
        for child in process.processes.children():
            if child.pid == pid:
                child.send_signal(int(number))
                return
        raise error("ProcessLookupError", 3, "No such process")

    def walk(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        found: list[Value] = []
        root = process.path(arguments[0])
        for path in files.walk(root) if files.exists(root) else ():
            machine.charge(_FILE)
            if files.entry(path).is_directory:
                names = list(files.children(path))
                machine.charge(_FILE * len(names))
                folders = [name for name in names if files.entry(posixpath.join(path, name)).is_directory]
                found.append((path, folders, sorted(set(names) - set(folders))))
            yield machine.pause()
        return found

    path = path_module(machine)
    machine.modules.setdefault("os.path", Module("posixpath", path))
    functions: dict[str, Callable[..., Any]] = {
        "getpid": lambda: process.processes.current_pid() or 1, "getppid": lambda: 0, "getcwd": lambda: process.directory,
        "getuid": lambda: host.user, "geteuid": lambda: host.user, "getgid": lambda: host.group, "cpu_count": lambda: 2,
        "listdir": lambda name=".": list(files.children(process.path(name))), "makedirs": make_folders, "mkdir": make_folder,
        "remove": remove, "unlink": remove, "rmdir": remove, "kill": kill,
    }  # fmt: skip
    return {name: checked(name, function) for name, function in functions.items()} | {
        "environ": machine.environment, "path": machine.modules["os.path"], "name": "posix", "sep": "/", "linesep": "\n",
        "getenv": plain("getenv", machine.environment.get), "_exit": Builtin("_exit", leave), "walk": Builtin("walk", walk),
        "urandom": Builtin("urandom", random_bytes), "devnull": "/dev/null",
        "uname": plain("uname", lambda: ("Linux", host.name, "6.1.0", "#1 SMP", "x86_64")),
    }  # fmt: skip


def path_module(machine: PythonInterpreter) -> dict[str, Value]:
    files, process = machine.process.host.files, machine.process

    def exists(name: str) -> bool:
        path = process.path(name)
        return files.exists(path) or files.unknown.is_expected(path)

    def is_folder(name: str) -> bool:
        path = process.path(name)
        return files.exists(path) and files.entry(path).is_directory

    def size(name: str) -> int:
        try:
            return files.entry(process.path(name)).size
        except FileError as problem:
            raise system_error(str(problem), name) from None

    functions: dict[str, Callable[..., Any]] = {
        "join": posixpath.join, "basename": posixpath.basename, "dirname": posixpath.dirname, "split": posixpath.split,
        "splitext": posixpath.splitext, "normpath": posixpath.normpath, "isabs": posixpath.isabs, "abspath": process.path,
        "realpath": process.path, "exists": exists, "isdir": is_folder, "getsize": size,
        "isfile": lambda name: exists(name) and not is_folder(name), "expanduser": lambda name: name.replace("~", "/root", 1),
    }  # fmt: skip
    return {name: plain(name, function) for name, function in functions.items()}


# --- signals and threads


def signal_module(machine: PythonInterpreter) -> dict[str, Value]:
    def handle(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Value:
        number, handler = arguments
        before = machine.handlers.get(number) if isinstance(number, int) else None
        if not isinstance(number, int) or number not in SIGNALS.values():
            raise error("ValueError", "signal number out of range")
        machine.handlers[number] = None if isinstance(handler, int) else handler
        if handler == 0:
            machine.handlers.pop(number, None)
        actions = {key: "" if value is None else "python" for key, value in machine.handlers.items()}
        machine.process.processes.catch_signals(actions)
        machine.process.host.catches_signals = True
        return before

    def pause(*_: Any) -> Code:
        yield machine.sleep(1e9)
        return None

    numbers: dict[str, Value] = {f"SIG{name}": number for name, number in SIGNALS.items()}
    return numbers | {
        "signal": Builtin("signal", handle),
        "pause": Builtin("pause", pause),
        "SIG_DFL": 0,
        "SIG_IGN": 1,
    }


def threading_module(machine: PythonInterpreter) -> dict[str, Value]:
    def make(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Thread:
        del arguments
        thread = Thread()
        thread.is_daemon = bool(keywords.get("daemon"))
        thread.members |= {
            "name": keywords.get("name", f"Thread-{len(machine.threads) + 1}"),
            "daemon": thread.is_daemon,
        }
        thread.members |= {
            "start": Builtin("start", lambda *_: start_thread(machine, thread, keywords)),
            "join": Builtin("join", lambda _, timeout, __: join_thread(thread, timeout)),
            "is_alive": plain("is_alive", lambda: hasattr(thread, "child") and thread.child.code is None),
        }
        return thread

    def lock(*_: Any) -> NativeObject:
        return NativeObject({
            name: Builtin(name, lambda *_: True)
            for name in ("acquire", "release", "__enter__", "locked")
        } | {"__exit__": Builtin("__exit__", lambda *_: None)})  # fmt: skip

    current = NativeObject({"name": "MainThread", "ident": 1, "daemon": False})
    return {
        "Thread": Builtin("Thread", make), "Lock": Builtin("Lock", lock), "RLock": Builtin("RLock", lock),
        "Event": Builtin("Event", lambda *_: event_object(machine)), "current_thread": Builtin("current_thread", lambda *_: current),
        "main_thread": Builtin("main_thread", lambda *_: current),
        "active_count": plain("active_count", lambda: 1 + sum(not thread.has_ended() for thread in machine.threads)),
    }  # fmt: skip


def start_thread(machine: PythonInterpreter, thread: Thread, keywords: Keywords) -> None:
    thread.is_daemon = bool(thread.members.get("daemon"))
    machine.threads[:] = [other for other in machine.threads if not other.has_ended()]
    if len(machine.threads) >= limits.MAX_THREADS:
        raise error("RuntimeError", "can't start new thread")

    def run() -> Code:
        try:
            yield machine.call(keywords.get("target"), list(keywords.get("args", ())), keywords.get("kwargs"))
        except PythonError as problem:
            text = yield machine.traceback(problem.value)
            yield machine.write(2, f"Exception in thread {thread.members['name']}:\n{text}")
        return 0

    process = machine.process
    steps: Run = machine.drive(run())
    execution = deliver(steps, process)
    try:
        thread.child = process.processes.start(["python"], execution, process.descriptors)
    except TooManyProcesses:
        raise error("RuntimeError", "can't start new thread") from None
    machine.threads.append(thread)


def join_thread(thread: Thread, arguments: list[Value]) -> Code:
    timeout = arguments[0] if arguments and arguments[0] is not None else float("inf")
    yield WaitUntil(thread.has_ended, timeout)
    return None


def event_object(machine: PythonInterpreter) -> NativeObject:
    state = {"is_set": False}

    def change(value: bool) -> Builtin:  # noqa: FBT001 - the value of the event
        def call(*_: Any) -> None:
            state["is_set"] = value
            machine.own_changes += 1

        return Builtin("set" if value else "clear", call)

    def wait(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
        timeout = arguments[0] if arguments else keywords.get("timeout")
        yield WaitUntil(lambda: state["is_set"], float("inf") if timeout is None else timeout)
        yield machine.handle_signals()
        return state["is_set"]

    return NativeObject({
        "set": change(True), "clear": change(False), "wait": Builtin("wait", wait),  # noqa: FBT003
        "is_set": plain("is_set", lambda: state["is_set"]),
    })  # fmt: skip


def socket_module(machine: PythonInterpreter) -> dict[str, Value]:
    return {"gethostname": plain("gethostname", lambda: machine.process.host.name)}
