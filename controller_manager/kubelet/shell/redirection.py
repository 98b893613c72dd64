"""Redirections of a command's input and output: to files, to other descriptors, and from another command."""

from collections.abc import Sequence
from typing import Final

from mockube.controller_manager.kubelet.shell.filesystem import FileError
from mockube.controller_manager.kubelet.shell.process import Input, Output, Process, RepeatedIteration, Run

_NULL_DEVICE: Final = "/dev/null"
_DESCRIPTORS: Final = {
    "/dev/stdout": 1,
    "/dev/stderr": 2,
    "/proc/1/fd/1": 1,
    "/proc/1/fd/2": 2,
    "/proc/self/fd/1": 1,
}


def pipe(reader: Run, writer: Run) -> Run:
    """Run a command with another command's output as its input; the writer runs only as far as its output is read."""
    buffer = bytearray()
    has_ended = False
    reply: bytes | None = None
    code = 0
    try:
        while True:
            effect = reader.send(reply) if reply else next(reader)
            if not isinstance(effect, Input):
                reply = yield effect
                continue
            while not buffer and not has_ended:
                has_ended = bool((yield from _run_until_output(writer, buffer)))
            reply = bytes(buffer[: effect.limit])
            del buffer[: effect.limit]
    except StopIteration as stop:
        code = int(stop.value)
    finally:
        writer.close()
    return code


def _run_until_output(writer: Run, buffer: bytearray) -> Run:
    """Run the writer until it has written output; return whether it has ended."""
    reply: bytes | None = None
    while True:
        try:
            effect = writer.send(reply) if reply else next(writer)
        except StopIteration:
            return True
        reply = None
        if isinstance(effect, Output) and effect.descriptor == 1:
            buffer += effect.data
            return False
        if not isinstance(effect, RepeatedIteration):  # No iteration is skipped, because its output is read.
            reply = yield effect


class Redirections:
    """The targets of a command's descriptors; the constructor opens the files, and truncates those to write."""

    def __init__(self, process: Process, redirects: Sequence[tuple[int, str, str]]) -> None:
        self._process = process
        self._targets: dict[int, int | str] = {1: 1, 2: 2}
        self._input: bytearray | None = None
        self.written_files = 0
        """The number of files that are written."""
        for descriptor, operator, target in redirects:
            self._open(descriptor, operator, target)

    def _open(self, descriptor: int, operator: str, target: str) -> None:
        if operator == "<":
            path = self._process.path(target)
            try:
                self._input = bytearray(b"" if path == _NULL_DEVICE else self._process.host.files.read(path))
            except FileError as error:
                raise FileError(f"can't open {target}: {error}") from error
            return
        if operator in (">&", "<&"):
            self._targets[descriptor] = (
                self._targets.get(int(target), 1) if target in ("1", "2") else _NULL_DEVICE
            )
            return
        path = self._process.path(target)
        destination: int | str = _DESCRIPTORS.get(path, path)
        for target_descriptor in (1, 2) if operator == "&>" else (descriptor,):
            self._targets[target_descriptor] = destination
        if isinstance(destination, str) and destination != _NULL_DEVICE:
            self.written_files += 1
            self._write(destination, b"", append=operator == ">>")

    def _write(self, path: str, data: bytes, *, append: bool) -> None:
        host = self._process.host
        try:
            host.files.write(path, data, append=append, modified=host.now().timestamp() + host.elapsed)
        except FileError as error:
            raise FileError(f"can't create {path}: {error}") from error

    def run(self, execution: Run) -> Run:
        reply: bytes | None = None
        try:
            while True:
                effect = execution.send(reply) if reply else next(execution)
                reply = None
                if isinstance(effect, Output):
                    destination = self._targets.get(effect.descriptor, effect.descriptor)
                    if isinstance(destination, int):
                        yield Output(destination, effect.data)
                    elif destination != _NULL_DEVICE:
                        self._write(destination, effect.data, append=True)
                elif isinstance(effect, Input) and self._input is not None:
                    reply = bytes(self._input[: effect.limit])
                    del self._input[: effect.limit]
                else:
                    reply = yield effect
        except StopIteration as stop:
            code: int = stop.value
            return code
        except FileError as error:
            yield self._process.error(str(error))
            return 1
