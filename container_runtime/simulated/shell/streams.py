"""What a descriptor refers to: the container's own input and output, files, pipes, and texts."""

from collections.abc import Generator, Mapping
from contextlib import suppress
from typing import Final
from weakref import ReferenceType, ref

from mockube.container_runtime.simulated.network import open_sockets

from . import limits
from .messages import message_of, usage
from .process import (
    COMMAND_NANOSECONDS,
    BrokenPipe,
    CommandStart,
    ContainerRead,
    ContainerWrite,
    DescriptorStream,
    Effect,
    Host,
    Input,
    MissingArguments,
    Output,
    Process,
    ProcessTable,
    ProgramKilled,
    ProgramUsageError,
    Run,
    Steps,
    WaitUntil,
    count_work,
    fill_memory,
    pass_work,
    slices,
)
from .vfs.file_entry import FileEntry, FileError, NoSpace, NoSuchFile

_LARGE: Final = 4096
"""The size from which on zeros are written without memory for them."""
PIPE_SIZE: Final = 64 * 1024
READ: Final = 4096
_READ_PER_COMMAND: Final = 8 * READ
SIGPIPE_CODE: Final = 141
"""The exit code of a process that SIGPIPE ends."""
_BYTES_PER_COMMAND: Final = 1 << 20
"""The size of a file that is copied in the time of a command."""
_MOVE_NANOSECONDS: Final = 10_000
_BYTE_NANOSECONDS: Final = 0.3
"""What a read or a write takes, and each of its bytes."""

_READ_ERROR: Final = "read error: Bad file descriptor"
_CLOSED_INPUT: Final = {
    **dict.fromkeys(("cut", "nl", "rev", "sed", "sort", "xargs", "grep", "egrep", "fgrep"), ""),
    **dict.fromkeys(("base64", "cat", "tail", "tr"), _READ_ERROR),
    "head": "standard input: Input/output error",
    "tac": "-: Bad file descriptor",
    "wc": "standard input: Bad file descriptor",
}
"""The programs that take a closed input for an empty one, with what they report at the end before they fail; "": nothing."""

Data = Generator[Effect, bytes | None, bytes]


_NEW_FILE: Final = FileEntry(data=b"")


class BadDescriptor(FileError):
    message = "Bad file descriptor"


class ClosedInput(BadDescriptor):
    """A program reads its standard input, which is closed."""


class _ReadOnly:
    def write(self, _: bytes) -> Steps:
        raise BadDescriptor
        yield


class _WriteOnly:
    def read(self, _: int) -> Data:
        raise BadDescriptor
        yield

    def unread(self, data: bytes) -> None:
        pass


class ContainerStream:
    """Standard input, output or error of the first process."""

    def __init__(self, host: Host, number: int) -> None:
        self._host = host
        self._number = number
        self._unread = b""

    def is_ready(self) -> bool:
        return bool(self._unread) or open_sockets.has_input()

    def read(self, limit: int) -> Data:
        if self._number:
            raise BadDescriptor
        data = self._unread or (yield ContainerRead(limit)) or b""
        self._host.changes += bool(data)
        self._unread = data[limit:]
        return data[:limit]

    def unread(self, data: bytes) -> None:
        self._unread = data + self._unread

    def write(self, data: bytes) -> Steps:
        if not self._number:
            raise BadDescriptor
        yield ContainerWrite(self._number, data)


class NullStream:
    """`/dev/null`."""

    def read(self, _: int) -> Data:
        return b""
        yield

    def unread(self, data: bytes) -> None:
        pass

    def write(self, _: bytes) -> Steps:
        return
        yield


class TextStream(_ReadOnly):
    """A here-document."""

    def __init__(self, host: Host, data: bytes) -> None:
        self._host = host
        self._data = data
        self._offset = 0

    def read(self, limit: int) -> Data:
        data = self._data[self._offset : self._offset + limit]
        self._offset += len(data)
        self._host.changes += bool(data)
        return data
        yield

    def unread(self, data: bytes) -> None:
        self._offset -= len(data)


class DeviceStream(TextStream):
    """A device from which programs read bytes; what they write is lost."""

    def write(self, _: bytes) -> Steps:
        return
        yield


class FullDevice(DeviceStream):
    """A device from which programs read zeros, and that has no space."""

    def write(self, _: bytes) -> Steps:
        raise NoSpace
        yield


class CaptureStream(_WriteOnly):
    """The output of a command substitution, up to the largest value that is kept; more of it only fills memory."""

    def __init__(self, process: Process) -> None:
        self.data = bytearray()
        self.size = 0
        self._process = process

    @property
    def is_complete(self) -> bool:
        return self.size == len(self.data)

    def write(self, data: bytes) -> Steps:
        before = self.size
        self.size += len(data)
        if self.size <= limits.MAX_VALUE:
            self._process.processes.keep(len(data))
            self.data += data
            return
        yield from fill_memory(self._process, self.size if before == len(self.data) else len(data))
        if self.size > limits.MAX_CAPTURED:
            raise BrokenPipe


class FileStream:
    """An open file; descriptors that are copies of each other share the offset."""

    def __init__(self, host: Host, path: str, *, reads: bool, writes: bool, appends: bool = False) -> None:
        self._host = host
        self._path = path
        self._reads = reads
        self._writes = writes
        self._appends = appends
        self._offset = 0
        self._last_data = b""
        """The content of a file that was removed since."""

    def _data(self) -> bytes:
        with suppress(NoSuchFile):
            self._last_data = self._host.files.read(self._path)
        return self._last_data

    def read(self, limit: int) -> Data:
        if not self._reads:
            raise BadDescriptor
        data = self._data()[self._offset : self._offset + limit]
        self._offset += len(data)
        self._host.changes += bool(data)
        return data
        yield

    def unread(self, data: bytes) -> None:
        self._offset -= len(data)

    def write(self, data: bytes) -> Steps:
        if not self._writes:
            raise BadDescriptor
        files = self._host.files
        modified = self._host.now_running(is_shown=True).timestamp()
        entry = files.entry(self._path) if files.knows(self._path) else _NEW_FILE
        size = entry.size
        yield from count_work(len(entry.data or b""), _BYTES_PER_COMMAND)  # which is copied
        self._host.changes += 1
        if self._appends or self._offset == size:
            free_bytes = files.place(files.resolve(self._path)).files.inodes.free()
            part = data[:free_bytes]
            if len(part) >= _LARGE and part.count(0) == len(part):
                files.write(self._path, b"", zeros=len(part), append=True, modified=modified)
            else:
                files.write(self._path, part, append=True, modified=modified)
            self._offset = size + len(part)
            if len(part) < len(data):
                raise NoSpace
            return
        before = self._data()[: self._offset].ljust(self._offset, b"\0")
        after = self._data()[self._offset + len(data) :]
        files.write(self._path, before + data + after, modified=modified)
        self._offset += len(data)

    def fill(self) -> None:
        """Write zeros until the disk is full."""
        files = self._host.files
        modified = self._host.now_running(is_shown=True).timestamp()
        files.write(
            self._path,
            b"",
            zeros=files.place(files.resolve(self._path)).files.inodes.free(),
            append=True,
            modified=modified,
        )
        self._host.changes += 1


class PipeReader(_ReadOnly):
    def __init__(self, pipe: "_Pipe") -> None:
        self._pipe = pipe

    def is_ready(self) -> bool:
        """Return whether a read does not wait."""
        return bool(self._pipe.buffer) or not self._pipe.has_writer()

    def read(self, limit: int) -> Data:
        pipe = self._pipe
        while not pipe.buffer:
            if not pipe.has_writer():
                return b""
            yield WaitUntil(self.is_ready)
        data = bytes(pipe.buffer[:limit])
        del pipe.buffer[:limit]
        pipe.host.changes += 1
        return data

    def unread(self, data: bytes) -> None:
        self._pipe.buffer[:0] = data


class PipeWriter(_WriteOnly):
    def __init__(self, pipe: "_Pipe") -> None:
        self._pipe = pipe

    def write(self, data: bytes) -> Steps:
        pipe = self._pipe
        for part in slices(data, PIPE_SIZE):
            while True:
                if not pipe.has_reader():
                    raise BrokenPipe
                if len(pipe.buffer) < PIPE_SIZE:
                    break
                yield WaitUntil(lambda: len(pipe.buffer) < PIPE_SIZE or not pipe.has_reader())
            pipe.buffer += part


def has_input(process: Process) -> bool:
    """Return whether a program that reads its input need not wait, as far as that is known."""
    stream = process.descriptors.get(0)
    return not isinstance(stream, (ContainerStream, PipeReader)) or stream.is_ready()


def is_read_by_program(process: Process) -> bool:
    """Return whether another program, or a shell, reads the standard output, which may so be endless."""
    return isinstance(process.descriptors.get(1), (PipeWriter, CaptureStream))


class _Pipe:
    """A pipe between processes; a write of up to `PIPE_SIZE` is not split, so that it may hold nearly twice as much."""

    reader: ReferenceType[PipeReader]
    writer: ReferenceType[PipeWriter]

    def __init__(self, host: Host, processes: ProcessTable) -> None:
        self.host = host
        self.buffer = bytearray()
        self._processes = processes

    def has_writer(self) -> bool:
        return (writer := self.writer()) is not None and self._processes.holds(writer)

    def has_reader(self) -> bool:
        return (reader := self.reader()) is not None and self._processes.holds(reader)


def open_pipe(host: Host, processes: ProcessTable) -> tuple[PipeReader, PipeWriter]:
    """Return the ends of a new pipe between processes."""
    pipe = _Pipe(host, processes)
    reader, writer = PipeReader(pipe), PipeWriter(pipe)
    pipe.reader, pipe.writer = ref(reader), ref(writer)
    return reader, writer


def read_line(stream: DescriptorStream, limit: int, delimiter: bytes = b"\n") -> Data:
    """Read up to a delimiter, which the result includes, or at most `limit` bytes."""
    line = bytearray()
    while len(line) < limit:
        if len(line) % _READ_PER_COMMAND == _READ_PER_COMMAND - READ:
            yield CommandStart()
        block = yield from stream.read(min(READ, limit - len(line)))
        end = block.find(delimiter)
        if end >= 0:
            stream.unread(block[end + 1 :])
            return bytes(line + block[: end + 1])
        if not block:
            break
        line += block
    return bytes(line)


def container_descriptors(host: Host) -> Mapping[int, DescriptorStream]:
    return {number: ContainerStream(host, number) for number in (0, 1, 2)}


def deliver(execution: Run, process: Process, *, is_builtin: bool = False) -> Run:
    """Execute a program with its descriptors; SIGPIPE ends it, or the shell if it is a builtin."""
    processes = process.processes
    if process.host.before_program is not None:
        yield from process.host.before_program(process)
    try:
        with (
            processes.hold(process.descriptors),
            processes.kept_until_end(),
            process.host.memory.freed_at_end(processes.current_pid(), lambda: process.host.elapsed),
        ):
            return (yield from _deliver_all(execution, process))
    except BrokenPipe:
        if is_builtin:
            raise
        return SIGPIPE_CODE
    except ClosedInput as error:
        yield from _report(process, f"standard input: {error}")
        return 1
    except BadDescriptor:
        return 1
    except FileError as error:
        yield from _report(process, f"write error: {error}")
        return 1
    except MissingArguments as error:
        if process.is_bash:
            yield from _write_error(process, f"{usage(process.name)}\n".encode())
        else:
            yield from _report(process, str(error))
        return error.code
    except ProgramUsageError as error:
        yield from _report(process, message_of(error, is_bash=process.is_bash))
        return error.bash_code if process.is_bash else error.code
    finally:
        execution.close()


def _deliver_all(execution: Run, process: Process) -> Run:
    descriptors = process.descriptors
    reply: bytes | None = None
    killed: ProgramKilled | None = None
    problem = ""
    host = process.host
    while True:
        try:
            effect = _resume(execution, reply, killed)
        except StopIteration as stop:
            code: int = stop.value
            if not problem:
                return code
            yield from _report(process, problem)
            return 1
        reply, killed, moved = None, None, 0
        if type(effect) is Output:
            if effect.data:
                yield from _writable(descriptors.get(effect.descriptor)).write(effect.data)
                moved = len(effect.data)
        elif type(effect) is Input:
            stream = descriptors.get(0)
            if stream is None:
                problem = _problem_of_closed_input(process)
            else:
                reply = yield from stream.read(effect.limit)
                moved = len(reply)
        else:
            try:
                reply = yield effect
            except ProgramKilled as error:  # of a program that the execution waits for
                killed = error
            continue
        host.moved_bytes += moved
        host.work += _MOVE_NANOSECONDS + _BYTE_NANOSECONDS * moved
        if host.work >= COMMAND_NANOSECONDS:  # the caller does not receive those on files and devices
            yield from pass_work(host)


def _writable(stream: DescriptorStream | None) -> DescriptorStream:
    if stream is None:
        raise BadDescriptor
    return stream


def _resume(execution: Run, reply: bytes | None, killed: ProgramKilled | None) -> Effect:
    if killed is not None:
        return execution.throw(killed)
    return execution.send(reply) if reply else next(execution)


def _problem_of_closed_input(process: Process) -> str:
    """Return what a program reports at its end; raise `ClosedInput` if it ends at once."""
    problem = _CLOSED_INPUT.get(process.name.rpartition("/")[2])
    if problem is None:
        raise ClosedInput
    return problem


def _report(process: Process, text: str) -> Steps:
    yield from _write_error(process, process.error(text).data)


def _write_error(process: Process, data: bytes) -> Steps:
    stream = process.descriptors.get(2)
    if stream is not None:
        yield from stream.write(data)
