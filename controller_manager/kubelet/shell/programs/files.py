"""Programs that read and change files: cat, mkdir, rm, cp, mv, ln, touch, chmod, chown and the like."""

from collections.abc import Mapping
from posixpath import basename, dirname, join, normpath, relpath
from typing import Final

from mockube.controller_manager.kubelet.shell.filesystem import FileError, NoSuchFile
from mockube.controller_manager.kubelet.shell.process import (
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    read_input,
    write_text,
)
from mockube.controller_manager.kubelet.shell.programs.inputs import BLOCK, number_of
from mockube.controller_manager.kubelet.shell.programs.modes import parse_mode
from mockube.controller_manager.kubelet.shell.programs.options import ProgramOptions, parse_options

_READ_ONLY: Final = "Read-only file system"


def modification_time(process: Process) -> float:
    process.host.changes += 1
    return process.host.now_running().timestamp()


def cat(process: Process) -> Run:
    options = parse_options(process.arguments, "nbvteAuETs", long={"number": "n", "show-all": "A"})
    for letter in "bvteAETs":
        if letter in options:
            raise ProgramUsageError(f"-{letter} is not simulated")
    code, line = 0, 0
    for name in options.arguments or ["-"]:
        if name == "-":
            while block := (yield from read_input(BLOCK)):
                data, line = _number_lines(block, line) if "n" in options else (block, line)
                yield Output(1, data)
            continue
        try:
            data = process.host.files.read(process.path(name))
        except FileError as error:
            words = (
                f"read error: {error}" if str(error) == "Is a directory" else f"can't open '{name}': {error}"
            )
            yield process.error(words)
            code = 1
            continue
        data, line = _number_lines(data, line) if "n" in options else (data, line)
        yield Output(1, data)
    return code


def _number_lines(data: bytes, line: int) -> tuple[bytes, int]:
    lines = data.splitlines(keepends=True)
    text = b"".join(b"%6d\t%s" % (number, text) for number, text in enumerate(lines, start=line + 1))
    return text, line + len(lines)


def mkdir(process: Process) -> Run:
    options = parse_options(process.arguments, "pvm:", long={"parents": "p", "mode": "m", "verbose": "v"})
    if not options.arguments:
        raise ProgramUsageError("usage: mkdir [-m MODE] [-p] DIRECTORY...")
    code = 0
    for name in options.arguments:
        path = process.path(name)
        try:
            process.host.files.make_directory(
                path, parents="p" in options, modified=modification_time(process)
            )
            if "m" in options:
                process.host.files.change(path, mode=parse_mode(options.get("m"), 0o777))
        except FileError as error:
            yield process.error(f"can't create directory '{name}': {error}")
            code = 1
    return code


def rmdir(process: Process) -> Run:
    options = parse_options(process.arguments, "p", long={"parents": "p", "ignore-fail-on-non-empty": "p"})
    code = 0
    for name in options.arguments:
        try:
            path = process.path(name)
            if list(process.host.files.children(path)):
                raise FileError("Directory not empty")  # noqa: TRY301 - one place reports all
            process.host.files.remove(path, recursive=True)
            process.host.changes += 1
        except FileError as error:
            yield process.error(f"'{name}': {error}")
            code = 1
    return code


def touch(process: Process) -> Run:
    options = parse_options(
        process.arguments, "chamd:t:r:", long={"no-create": "c", "date": "d", "reference": "r"}
    )
    files = process.host.files
    code = 0
    for name in options.arguments:
        path = process.path(name)
        try:
            if not files.exists(path):
                if "c" not in options:
                    files.write(path, b"", append=True, modified=modification_time(process))
                continue
            modified = modification_time(process)
            if "r" in options:
                modified = files.entry(process.path(options.get("r"))).modified
            files.change(path, modified=modified)
        except FileError as error:
            yield process.error(f"{name}: {error}")
            code = 1
    return code


def rm(process: Process) -> Run:
    options = parse_options(
        process.arguments, "rRfivd", long={"recursive": "r", "force": "f", "dir": "d", "verbose": "v"}
    )
    if not options.arguments and "f" not in options:
        raise ProgramUsageError("usage: rm [-irf] FILE...")
    code = 0
    for name in options.arguments:
        try:
            if normpath(name) in (".", "..") or process.path(name) == "/":
                raise FileError("Invalid argument")  # noqa: TRY301 - one place reports all
            process.host.files.remove(process.path(name), recursive=options.has_any("rR"))
            process.host.changes += 1
            if "v" in options:
                yield write_text(f"removed '{name}'\n")
        except NoSuchFile as error:
            if "f" not in options:
                yield process.error(f"can't remove '{name}': {error}")
                code = 1
        except FileError as error:
            yield process.error(f"can't remove '{name}': {error}")
            code = 1
    return code


_COPY_OPTIONS: Final = "rRadpPLHfinuvTt:"
_COPY_LONG: Final = {
    "recursive": "r", "archive": "a", "force": "f", "no-clobber": "n", "update": "u", "verbose": "v", "no-target-directory": "T",
    "target-directory": "t", "parents": "parents", "dereference": "L",
}  # fmt: skip


def cp(process: Process) -> Run:
    options = parse_options(process.arguments, _COPY_OPTIONS, long=_COPY_LONG)
    return (yield from _transfer(process, options, moves=False))


def mv(process: Process) -> Run:
    options = parse_options(process.arguments, "finvTt:", long=_COPY_LONG)
    return (yield from _transfer(process, options, moves=True))


def _transfer(process: Process, options: ProgramOptions, *, moves: bool) -> Run:
    names = list(options.arguments)
    last = options.get("t") if "t" in options else names.pop() if len(names) > 1 else ""
    if not names or not last:
        raise ProgramUsageError("missing file operand")
    files = process.host.files
    is_directory = files.exists(process.path(last)) and files.entry(process.path(last)).is_directory
    if len(names) > 1 and not is_directory:
        raise ProgramUsageError(f"target '{last}' is not a directory")
    code = 0
    for name in names:
        target = process.path(last)
        if is_directory and "T" not in options:
            target = join(target, basename(process.path(name)))
        try:
            if "n" in options and files.exists(target):
                continue
            _copy(process, name, target, options, moves=moves)
            if "v" in options:
                yield write_text(f"'{name}' -> '{last}'\n")
        except NoSuchFile as error:
            yield process.error(f"can't {'rename' if moves else 'stat'} '{name}': {error}")
            code = 1
        except FileError as error:
            yield process.error(_copy_problem(name, last, str(error), moves=moves))
            code = 1
    return code


def _copy_problem(name: str, last: str, problem: str, *, moves: bool) -> str:
    if problem == "omitting directory":
        return f"omitting directory '{name}'"
    return f"can't {'rename' if moves else 'create'} '{name if moves else last}': {problem}"


def _copy(process: Process, name: str, target: str, options: ProgramOptions, *, moves: bool) -> None:
    files, source = process.host.files, process.path(name)
    recursive = moves or options.has_any("rRa")
    keeps = moves or options.has_any("apd")
    source_entry = files.link_entry(source) if recursive else files.entry(source)
    if source_entry.is_directory and not recursive:
        raise FileError("omitting directory")
    if target == source or target.startswith(f"{source}/"):
        raise FileError("Invalid argument" if moves else "is a subdirectory of itself")
    if moves and files.has(target):
        if files.link_entry(target).is_directory and list(files.children(target)):
            raise FileError("Directory not empty")
        files.remove(target, recursive=True)
    for path in list(files.walk(source)):
        target_path = target + path.removeprefix(source)
        entry = files.link_entry(path) if recursive and "L" not in options else files.entry(path)
        modified = entry.modified if keeps else modification_time(process)
        if entry.target:
            if files.has(target_path):
                files.remove(target_path)
            files.link(target_path, entry.target, modified=modified)
        elif entry.data is None:
            files.make_directory(target_path, parents=files.exists(target_path), modified=modified)
            files.change(target_path, mode=entry.mode)
        else:
            files.write(target_path, entry.data, modified=modified)
            files.change(target_path, mode=entry.mode)
    if moves:
        files.remove(source, recursive=True)


def ln(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "sfnvrTt:b",
        long={"symbolic": "s", "force": "f", "no-dereference": "n", "relative": "r", "verbose": "v"},
    )
    if "s" not in options:
        raise ProgramUsageError("hard links are not simulated")
    names = list(options.arguments)
    last = options.get("t") if "t" in options else names.pop() if len(names) > 1 else "."
    if not names:
        raise ProgramUsageError("missing file operand")
    files = process.host.files
    path = process.path(last)
    is_link = files.has(path) and bool(files.link_entry(path).target)
    is_directory = files.exists(path) and files.entry(path).is_directory
    is_directory = is_directory and "T" not in options and not ("n" in options and is_link)
    code = 0
    for name in names:
        link_path = join(path, basename(name.rstrip("/"))) if is_directory else path
        target = relpath(process.path(name), dirname(link_path)) if "r" in options else name
        try:
            if "f" in options and files.has(link_path):
                files.remove(link_path)
            files.link(link_path, target, modified=modification_time(process))
        except FileError as error:
            yield process.error(f"{last}: {error}")
            code = 1
    return code


def chmod(process: Process) -> Run:
    arguments = list(process.arguments)
    flags = [
        text for text in arguments if text.startswith("-") and set(text[1:]) <= set("Rvcf") and text != "-"
    ]
    mode, *names = [text for text in arguments if text not in flags and text != "--"] or [""]
    if not names:
        raise ProgramUsageError("usage: chmod [-Rcvf] MODE[,MODE]... FILE...")
    files = process.host.files
    code = 0
    for name in names:
        path = process.path(name)
        try:
            paths = list(files.walk(path)) if any("R" in flag for flag in flags) else [path]
            for each in paths:
                entry = files.entry(each)
                changed = parse_mode(mode, entry.mode, is_directory=entry.is_directory)
                files.change(each, mode=changed)
                process.host.changes += changed != entry.mode
        except FileError as error:
            yield process.error(f"{name}: {error}")
            code = 1
    return code


def _owner(text: str, *, is_group: bool) -> dict[str, int]:
    """Return the attributes that the argument of chown or chgrp sets."""
    user, _, group = ("", "", text) if is_group else text.replace(".", ":").partition(":")
    attributes = {}
    for name, value in (("user", user), ("group", group)):
        if value:
            number = {"root": 0, "nobody": 65534, "nogroup": 65534, "daemon": 1, "wheel": 0}.get(value)
            if number is None and not value.isdecimal():
                raise ProgramUsageError(
                    f"unknown user {value}" if name == "user" else f"unknown group {value}"
                )
            attributes[name] = int(value[:9]) if number is None else number
    return attributes


def chown(process: Process) -> Run:
    options = parse_options(
        process.arguments, "RhHLPcvf", long={"recursive": "R", "no-dereference": "h", "reference": "r"}
    )
    if len(options.arguments) < 2:
        raise ProgramUsageError(f"usage: {process.name} [-RhLHPcvf] USER[:[GRP]] FILE...")
    attributes = _owner(options.arguments[0], is_group=process.name == "chgrp")
    files, code = process.host.files, 0
    for name in options.arguments[1:]:
        path = process.path(name)
        try:
            for each in list(files.walk(path)) if "R" in options else [path]:
                entry = files.entry(each)
                if process.host.user and attributes.get("user", entry.user) != entry.user:
                    raise FileError("Operation not permitted")  # noqa: TRY301 - one place reports all
                files.change(each, **attributes)
            process.host.changes += 1
        except FileError as error:
            yield process.error(f"{name}: {error}")
            code = 1
    return code


def install(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "cdDpsm:o:g:t:",
        long={"mode": "m", "owner": "o", "group": "g", "directory": "d", "target-directory": "t"},
    )
    mode = parse_mode(options.get("m", "755"), 0)
    files = process.host.files
    if "d" in options:
        for name in options.arguments:
            files.make_directory(process.path(name), parents=True, modified=modification_time(process))
            files.change(process.path(name), mode=mode)
        return 0
    names = list(options.arguments)
    last = process.path(options.get("t") if "t" in options else names.pop() if len(names) > 1 else "")
    for name in names:
        is_directory = files.exists(last) and files.entry(last).is_directory
        target = join(last, basename(name)) if is_directory else last
        try:
            if "D" in options:
                files.make_directory(dirname(target), parents=True, modified=modification_time(process))
            files.write(target, files.read(process.path(name)), modified=modification_time(process))
            files.change(target, mode=mode)
        except FileError as error:
            raise ProgramUsageError(f"can't open '{name}': {error}") from error
    return 0
    yield


def truncate(process: Process) -> Run:
    options = parse_options(process.arguments, "cs:", long={"size": "s", "no-create": "c"})
    size = number_of(options.get("s"))
    for name in options.arguments:
        path, files = process.path(name), process.host.files
        if not files.exists(path) and "c" in options:
            continue
        try:
            before = files.read(path) if files.exists(path) else b""
            files.write(
                path, before[:size].ljust(min(size, 1 << 25), b"\0"), modified=modification_time(process)
            )
        except FileError as error:
            raise ProgramUsageError(f"{name}: {error}") from error
    return 0
    yield


PROGRAMS: Final[Mapping[str, Program]] = {
    "cat": cat,
    "mkdir": mkdir,
    "rmdir": rmdir,
    "touch": touch,
    "rm": rm,
    "unlink": rm,
    "cp": cp,
    "mv": mv,
    "ln": ln,
    "chmod": chmod,
    "chown": chown,
    "chgrp": chown,
    "install": install,
    "truncate": truncate,
}
