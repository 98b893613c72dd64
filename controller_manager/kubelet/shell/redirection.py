"""What a command writes and reads led elsewhere: into files, into other descriptors, from another command."""

from collections.abc import Sequence
from typing import Final

from mockube.controller_manager.kubelet.shell.filesystem import FileError
from mockube.controller_manager.kubelet.shell.process import Input, Output, Process, RepeatedIteration, Run

_NOWHERE: Final = "/dev/null"
_DESCRIPTORS: Final = {
    "/dev/stdout": 1,
    "/dev/stderr": 2,
    "/proc/1/fd/1": 1,
    "/proc/1/fd/2": 2,
    "/proc/self/fd/1": 1,
}


def with_input_of(reader: Run, writer: Run) -> Run:
    """Run a command whose input is another's output; that one runs only as far as its output is read."""
    buffer = bytearray()
    is_over = False
    answer: bytes | None = None
    code = 0
    try:
        while True:
            effect = reader.send(answer) if answer else next(reader)
            if not isinstance(effect, Input):
                answer = yield effect
                continue
            while not buffer and not is_over:
                is_over = bool((yield from _advance(writer, buffer)))
            answer = bytes(buffer[: effect.limit])
            del buffer[: effect.limit]
    except StopIteration as ended:
        code = int(ended.value)
    finally:
        writer.close()
    return code


def _advance(writer: Run, buffer: bytearray) -> Run:
    """Run the writer until it has written something; return whether it has ended."""
    answer: bytes | None = None
    while True:
        try:
            effect = writer.send(answer) if answer else next(writer)
        except StopIteration:
            return True
        answer = None
        if isinstance(effect, Output) and effect.descriptor == 1:
            buffer += effect.data
            return False
        if not isinstance(effect, RepeatedIteration):  # what it writes has to be read
            answer = yield effect


class RedirectedFiles:
    """Where each descriptor of a command leads; files are opened, and emptied, when it is made."""

    def __init__(self, process: Process, redirects: Sequence[tuple[int, str, str]]) -> None:
        self._process = process
        self._targets: dict[int, int | str] = {1: 1, 2: 2}
        self._input: bytearray | None = None
        self.changes = 0
        """How many files are written."""
        for descriptor, operator, target in redirects:
            self._open(descriptor, operator, target)

    def _open(self, descriptor: int, operator: str, target: str) -> None:
        if operator == "<":
            path = self._process.path(target)
            try:
                self._input = bytearray(b"" if path == _NOWHERE else self._process.host.files.read(path))
            except FileError as error:
                raise FileError(f"can't open {target}: {error}") from error
            return
        if operator in (">&", "<&"):
            self._targets[descriptor] = (
                self._targets.get(int(target), 1) if target in ("1", "2") else _NOWHERE
            )
            return
        path = self._process.path(target)
        place: int | str = _DESCRIPTORS.get(path, path)
        for target_descriptor in (1, 2) if operator == "&>" else (descriptor,):
            self._targets[target_descriptor] = place
        if isinstance(place, str) and place != _NOWHERE:
            self.changes += 1
            self._write(place, b"", append=operator == ">>")

    def _write(self, path: str, data: bytes, *, append: bool) -> None:
        host = self._process.host
        try:
            host.files.write(path, data, append=append, modified=host.now().timestamp() + host.elapsed)
        except FileError as error:
            raise FileError(f"can't create {path}: {error}") from error

    def run(self, running: Run) -> Run:
        answer: bytes | None = None
        try:
            while True:
                effect = running.send(answer) if answer else next(running)
                answer = None
                if isinstance(effect, Output):
                    place = self._targets.get(effect.descriptor, effect.descriptor)
                    if isinstance(place, int):
                        yield Output(place, effect.data)
                    elif place != _NOWHERE:
                        self._write(place, effect.data, append=True)
                elif isinstance(effect, Input) and self._input is not None:
                    answer = bytes(self._input[: effect.limit])
                    del self._input[: effect.limit]
                else:
                    answer = yield effect
        except StopIteration as ended:
            code: int = ended.value
            return code
        except FileError as error:
            yield self._process.error(str(error))
            return 1
