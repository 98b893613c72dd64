"""Programs that read, list and change files: cat, ls, mkdir, cp, rm and the like."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from posixpath import basename, join
from typing import Final

from mockube.controller_manager.kubelet.shell.filesystem import FileEntry, FileError, FileSystem
from mockube.controller_manager.kubelet.shell.process import (
    Output,
    Process,
    Program,
    Run,
    read_input,
    write_text,
)
from mockube.controller_manager.kubelet.shell.programs.text import BLOCK, split_options

_BITS: Final = "rwxrwxrwx"


def cat(process: Process) -> Run:
    code = 0
    for name in [argument for argument in process.arguments if argument == "-" or argument[:1] != "-"] or [
        "-"
    ]:
        if name == "-":
            while block := (yield from read_input(BLOCK)):
                yield Output(1, block)
            continue
        try:
            yield Output(1, process.host.files.read(process.path(name)))
        except FileError as error:
            yield process.error(f"can't open '{name}': {error}")
            code = 1
    return code


def ls(process: Process) -> Run:
    options, names = split_options(process)
    files, code = process.host.files, 0
    names = names or ["."]
    for name in names:
        path = process.path(name)
        try:
            entry = files.entry(path)
            is_listed = entry.is_directory and "d" not in options
            children = list(files.children(path)) if is_listed else [name]
        except FileError as error:
            yield process.error(f"{name}: {error}")
            code = 1
            continue
        if len(names) > 1 and is_listed:
            yield write_text(f"{name}:\n")
        entries = [
            child
            for child in children
            if not (is_listed and child.startswith(".")) or {"a", "A"} & options.keys()
        ]
        yield write_text(
            "".join(
                _line(files, join(path, child) if is_listed else path, child, options) for child in entries
            )
        )
    return code


def _line(files: FileSystem, path: str, name: str, options: Mapping[str, str]) -> str:
    if "l" not in options:
        return f"{name}\n"
    entry = files.entry(path)
    kind = "d" if entry.is_directory else "l" if entry.target else "-"
    bits = "".join(letter if entry.mode >> (8 - index) & 1 else "-" for index, letter in enumerate(_BITS))
    when = datetime.fromtimestamp(entry.modified, UTC)
    arrow = f" -> {entry.target}" if entry.target else ""
    return f"{kind}{bits}    1 root     root     {entry.size:9} {when:%b} {when.day:2} {when:%H:%M} {name}{arrow}\n"


def _modification_time(process: Process) -> float:
    return process.host.now_running().timestamp()


def mkdir(process: Process) -> Run:
    options, names = split_options(process, "m")
    code = 0
    for name in names:
        try:
            process.host.files.make_directory(
                process.path(name), parents="p" in options, modified=_modification_time(process)
            )
        except FileError as error:
            yield process.error(f"can't create directory '{name}': {error}")
            code = 1
    return code


def touch(process: Process) -> Run:
    _, names = split_options(process)
    code = 0
    for name in names:
        try:
            process.host.files.write(
                process.path(name), b"", append=True, modified=_modification_time(process)
            )
        except FileError as error:
            yield process.error(f"{name}: {error}")
            code = 1
    return code


def rm(process: Process) -> Run:
    options, names = split_options(process)
    code = 0
    for name in names:
        try:
            process.host.files.remove(process.path(name), recursive=bool({"r", "R"} & options.keys()))
        except FileError as error:
            if "f" not in options or str(error) == "Read-only file system":
                yield process.error(f"can't remove '{name}': {error}")
                code = 1
    return code


def cp(process: Process) -> Run:
    return (yield from _transfer(process, moves=False))


def mv(process: Process) -> Run:
    return (yield from _transfer(process, moves=True))


def _transfer(process: Process, *, moves: bool) -> Run:
    options, names = split_options(process)
    if len(names) < 2:
        yield process.error("missing file operand")
        return 1
    *sources, last = names
    recursive = moves or bool({"r", "R", "a"} & options.keys())
    for name in sources:
        try:
            _copy(process, process.path(name), process.path(last), recursive=recursive)
            if moves:
                process.host.files.remove(process.path(name), recursive=True)
        except FileError as error:
            yield process.error(f"can't {'rename' if moves else 'stat'} '{name}': {error}")
            return 1
    return 0


def _copy(process: Process, source: str, target: str, *, recursive: bool) -> None:
    files = process.host.files
    if files.exists(target) and files.entry(target).is_directory:
        target = join(target, basename(source))
    if files.entry(source).is_directory and not recursive:
        raise FileError("omitting directory")
    if target == source or target.startswith(f"{source}/"):
        raise FileError("Invalid argument")
    for path in list(files.walk(source)):
        target_path = target + path.removeprefix(source)
        entry = files.entry(path)
        if entry.data is None:
            files.make_directory(target_path, parents=True, modified=entry.modified)
        else:
            files.write(target_path, entry.data, modified=_modification_time(process))


def chmod(process: Process) -> Run:
    _, names = split_options(process)
    mode, *paths = names or [""]
    if not (mode.isascii() and mode.isdigit() and len(mode) <= 4 and not set(mode) & {"8", "9"}):
        return 0  # A symbolic mode is ignored.
    for name in paths:
        try:
            process.host.files.change_mode(process.path(name), int(mode, 8))
        except FileError as error:
            yield process.error(f"{name}: {error}")
            return 1
    return 0


def tee(process: Process) -> Run:
    options, names = split_options(process)
    files, code = process.host.files, 0
    for name in names if "a" not in options else ():
        code = (yield from _append(process, files, [name], None)) or code
    while block := (yield from read_input(BLOCK)):
        yield Output(1, block)
        code = (yield from _append(process, files, names, block)) or code
    return code


def _append(process: Process, files: FileSystem, names: Sequence[str], data: bytes | None) -> Run:
    """Append data to files; None truncates them."""
    for name in names:
        try:
            files.write(
                process.path(name), data or b"", append=data is not None, modified=_modification_time(process)
            )
        except FileError as error:
            yield process.error(f"{name}: {error}")
            return 1
    return 0


def find(process: Process) -> Run:
    _, names = split_options(process, "name")
    for name in names[:1] or ["."]:
        path = process.path(name)
        if not process.host.files.exists(path):
            yield process.error(f"{name}: No such file or directory")
            return 1
        for child_path in process.host.files.walk(path):
            yield write_text(name + child_path.removeprefix(path) + "\n")
    return 0


def readlink(process: Process) -> Run:
    _, names = split_options(process)
    for name in names:
        path = process.path(name)
        entry = process.host.files.entry(path) if process.host.files.exists(path) else FileEntry()
        yield write_text(f"{entry.target or path}\n")
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {
    "cat": cat,
    "ls": ls,
    "mkdir": mkdir,
    "touch": touch,
    "rm": rm,
    "cp": cp,
    "mv": mv,
    "chmod": chmod,
    "tee": tee,
    "find": find,
    "readlink": readlink,
}
