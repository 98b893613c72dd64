"""Programs that encode and check data: base64, checksums, cksum, od, hexdump, xxd."""

import base64
import hashlib
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final, Protocol

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Effect,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    count_work,
    slices,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .inputs import LINES_AT_ONCE, number_of, read_all, read_files, split_lines

_ROW_WIDTH: Final = 39
_ROWS_AT_ONCE: Final = 10
"""The rows of 16 bytes that are printed in the time of a command."""
_ENCODED_AT_ONCE: Final = 3 << 14
_BYTES_AT_ONCE: Final = 1 << 17
"""The bytes of which a checksum is computed at once."""
_HASHED_IN: Final = 5
"""The commands in whose time a checksum of as many bytes is computed."""
_REVERSED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
"""All bytes with their bits in the reverse order."""
_BLANKS: Final = b" \t\n\r\v\f"


class Digest(Protocol):
    """A checksum of data that arrive in parts."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


Algorithm = Callable[[], Digest]


def base64_text(process: Process) -> Run:
    options = parse_options(
        process.arguments, "dDiw:", long={"decode": "d", "wrap": "w", "ignore-garbage": "i"}
    )
    inputs = yield from read_files(process, options.arguments[:1])
    if inputs.code:
        return inputs.code
    if options.has_any("dD"):
        try:
            yield Output(
                1, base64.b64decode(inputs.data.translate(None, _BLANKS), validate="i" not in options)
            )
        except ValueError:
            raise ProgramUsageError("invalid input") from None
        return 0
    encoded = bytearray()
    for part in slices(inputs.data, _ENCODED_AT_ONCE):
        yield CommandStart()
        encoded += base64.b64encode(part)
    encoded_data = bytes(encoded)
    width = number_of(options.get("w", "76"))
    if not width:
        yield Output(1, encoded_data)
        return 0
    if len(encoded_data) > width * limits.MAX_LINES:
        raise ProgramUsageError("the output has too many lines", 2)
    lines = slices(encoded_data, width)
    while rows := [*islice(lines, LINES_AT_ONCE)]:
        yield CommandStart()
        yield Output(1, b"".join(line + b"\n" for line in rows))
    return 0


def _digest(algorithm: Algorithm, data: bytes) -> Generator[Effect, bytes | None, str]:
    digest = algorithm()
    for part in slices(data, _BYTES_AT_ONCE):
        yield from count_work(len(part), _BYTES_AT_ONCE // _HASHED_IN)
        digest.update(part)
    return digest.hexdigest()


def _checksum(algorithm: Algorithm) -> Program:
    def checksum(process: Process) -> Run:
        options = parse_options(
            process.arguments, "cswbt", long={"check": "c", "status": "s", "quiet": "s", "binary": "b"}
        )
        if "c" in options:
            return (yield from _check(process, algorithm, options.arguments, is_quiet="s" in options))
        inputs = yield from read_files(process, options.arguments, prefix="open")
        for name, data in inputs:
            yield write_text(f"{(yield from _digest(algorithm, data))}  {name}\n")
        return inputs.code

    return checksum


def _check(process: Process, algorithm: Algorithm, names: list[str], *, is_quiet: bool) -> Run:
    failed = 0
    lines = yield from split_lines((yield from read_all(process, names)))
    for line in lines:
        expected, _, name = line.partition(" ")
        name = name.lstrip(" *")
        try:
            data = process.host.files.read(process.path(name))
            is_same = (yield from _digest(algorithm, data)) == expected
        except FileError as error:
            yield process.error(f"can't open '{name}': {error}")
            is_same = False
        failed += not is_same
        if not is_quiet:
            yield write_text(f"{name}: {'OK' if is_same else 'FAILED'}\n")
    if failed and not is_quiet:
        yield process.error(f"WARNING: {failed} of {len(lines)} computed checksums did NOT match")
    return int(failed > 0 or not lines)


def cksum(process: Process) -> Run:
    options = parse_options(process.arguments, "")
    inputs = yield from read_files(process, options.arguments)
    for name, data in inputs:
        title = f" {name}" if options.arguments else ""
        yield write_text(f"{posix_checksum(data)} {len(data)}{title}\n")
    return inputs.code


def posix_checksum(data: bytes) -> int:
    """Return the CRC of POSIX, which also covers the length, and which takes the bits of a byte in the other order than zlib's."""
    size = len(data).to_bytes((len(data).bit_length() + 7) // 8, "little")
    checksum = zlib.crc32(size.translate(_REVERSED), zlib.crc32(data.translate(_REVERSED), 0xFFFFFFFF))
    return int(f"{checksum:032b}"[::-1], 2)


def octal_dump(process: Process) -> Run:
    options = parse_options(process.arguments, "bcdoxvA:N:j:t:")
    data = (yield from read_all(process, options.arguments))[: limits.MAX_DUMP + 1]
    data = data[number_of(options.get("j", "0")) :]
    data = data[: number_of(options.get("N"))] if "N" in options else data
    if len(data) > limits.MAX_DUMP:
        raise ProgramUsageError("the input is too long")
    kind = options.get("t") or next((name for name in "cbdox" if name in options), "o2")
    base = options.get("A", "o")
    rows = _dump_lines(data, kind, base)
    while part := "".join(islice(rows, _ROWS_AT_ONCE)):
        yield CommandStart()
        yield write_text(part)
    return 0


def _dump_lines(data: bytes, kind: str, base: str) -> Iterator[str]:
    for start in range(0, len(data), 16):
        yield f"{_offset(start, base)}{_dump_row(data[start : start + 16], kind)}\n"
    if base != "n":
        yield f"{_offset(len(data), base)}\n"


def _offset(position: int, base: str) -> str:
    return {"o": f"{position:07o}", "d": f"{position:07}", "x": f"{position:06x}", "n": ""}.get(base, "")


_NAMES: Final = {0: "\\0", 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}


def _dump_row(row: bytes, kind: str) -> str:
    if kind in ("c", "a"):
        texts = (_NAMES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"{byte:03o}") for byte in row)
        return "".join(f"{text:>4}" for text in texts)
    if kind in ("x1", "xC"):
        return "".join(f" {byte:02x}" for byte in row)
    if kind in ("b", "o1"):
        return "".join(f" {byte:03o}" for byte in row)
    if kind in ("u1", "d1"):
        return "".join(f" {byte:3}" for byte in row)
    words = (int.from_bytes(row[index : index + 2], "little") for index in range(0, len(row), 2))
    formats = {"o": "{:06o}", "o2": "{:06o}", "x": "{:04x}", "x2": "{:04x}", "d": "{:5}", "u2": "{:5}"}
    if kind not in formats:
        raise ProgramUsageError(f"-t {kind} is not simulated")
    return "".join(f" {formats[kind].format(word)}" for word in words)


def hex_dump(process: Process) -> Run:
    options = parse_options(process.arguments, "Cvn:s:e:", numbers="n")
    if "e" in options:
        raise ProgramUsageError("-e is not simulated")
    data = (yield from read_all(process, options.arguments))[: limits.MAX_DUMP + 1]
    data = data[number_of(options.get("s", "0")) :]
    data = data[: number_of(options.get("n"))] if "n" in options else data
    if len(data) > limits.MAX_DUMP:
        raise ProgramUsageError("the input is too long")
    output: list[str] = []
    for start in range(0, len(data), 16):
        if len(output) >= _ROWS_AT_ONCE:
            yield CommandStart()
            yield write_text("".join(output))
            output.clear()
        row = data[start : start + 16]
        if "C" in options or process.name == "hd":
            left, right = (" ".join(f"{byte:02x}" for byte in part) for part in (row[:8], row[8:]))
            text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            output.append(f"{start:08x}  {left:23}  {right:23}  |{text}|\n")
        else:
            words = (int.from_bytes(row[index : index + 2], "little") for index in range(0, len(row), 2))
            output.append(
                f"{start:07x} " + " ".join(f"{word:04x}" for word in words).ljust(_ROW_WIDTH) + "\n"
            )
    is_canonical = "C" in options or process.name == "hd"
    if data:
        output.append(f"{len(data):08x}\n" if is_canonical else f"{len(data):07x}\n")
    yield write_text("".join(output))
    return 0


def xxd(process: Process) -> Run:
    options = parse_options(process.arguments, "prc:l:s:")
    data = yield from read_all(process, options.arguments[:1])
    data = data[number_of(options.get("s", "0")) :]
    data = data[: number_of(options.get("l"))] if "l" in options else data
    if len(data) > limits.MAX_DUMP:
        raise ProgramUsageError("the input is too long")
    if "r" in options:
        try:
            yield Output(1, bytes.fromhex(data.decode("ascii", "replace")))
        except ValueError:
            raise ProgramUsageError("only plain hexadecimal input is simulated") from None
        return 0
    width = number_of(options.get("c", "30" if "p" in options else "16"), 1)
    rows = (data[start : start + width] for start in range(0, len(data), width))
    if "p" in options:
        while part := "".join(f"{row.hex()}\n" for row in islice(rows, _ROWS_AT_ONCE)):
            yield CommandStart()
            yield write_text(part)
        return 0
    for index, row in enumerate(rows):
        if not index % _ROWS_AT_ONCE:
            yield CommandStart()
        digits = " ".join(row[start : start + 2].hex() for start in range(0, len(row), 2))
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield write_text(f"{index * width:08x}: {digits:{width * 5 // 2 - 1}}  {text}\n")
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {
    "base64": base64_text,
    "md5sum": _checksum(partial(hashlib.md5, usedforsecurity=False)),
    "sha1sum": _checksum(partial(hashlib.sha1, usedforsecurity=False)),
    "sha256sum": _checksum(hashlib.sha256),
    "sha512sum": _checksum(hashlib.sha512),
    "cksum": cksum,
    "od": octal_dump,
    "hexdump": hex_dump,
    "hd": hex_dump,
    "xxd": xxd,
}
