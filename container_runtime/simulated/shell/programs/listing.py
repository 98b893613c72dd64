"""Programs that show files: ls, stat, du, df, readlink, realpath, mktemp, basename, dirname."""

import re
from collections.abc import Generator, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from posixpath import basename, dirname, join
from typing import Final, TypeAlias

from mockube.container_runtime.simulated.shell.disks import is_below, mounted_disks
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Effect,
    Host,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Steps,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, FileError

from .files import modification_time
from .inputs import FILES_AT_ONCE, walk
from .modes import permissions_text

_GNU_FAILURE: Final = 2
"""The exit code of GNU's ls for an operand that it cannot list; busybox' is 1."""
_ENTRIES_AT_ONCE: Final = 20
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_PARTS: Final = re.compile(r"([0-9]{1,15})")
_STAT: Final = re.compile(r"%([#0 +-]{0,8}[0-9]{0,9})([A-Za-z%])")
_Row: TypeAlias = tuple[str, FileEntry]
"""What a line of ls shows: a name and what has it."""


def human_size(size: int) -> str:
    """Return a size with a unit, as `ls -h` shows it."""
    value, units = float(size), ["", "K", "M", "G", "T"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f}{units[0]}" if units[0] else str(size)


def ls(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "1AadLHRFplnshrSXvctukwT:" + "fgGoQU",
        long={
            "all": "a",
            "almost-all": "A",
            "recursive": "R",
            "human-readable": "h",
            "directory": "d",
            "color": "color",
            "full-time": "e",
            "reverse": "r",
        },
    )
    names = options.arguments or ["."]
    files, code = process.host.files, 0
    failure = _GNU_FAILURE if process.host.has_gnu_programs else 1
    plain: list[str] = []
    folders: list[str] = []
    for name in names:
        path = process.path(name)
        try:
            is_followed = options.has_any("HL") or name.endswith("/") or not options.has_any("dlF")
            entry = files.entry(path) if is_followed else files.link_entry(path)
        except FileError as error:
            yield process.error(f"{name}: {error}")
            code = failure
            continue
        (folders if entry.is_directory and "d" not in options else plain).append(name)
    if plain:
        rows = yield from _with_entries(process, [(name, process.path(name)) for name in plain])
        yield from _write_rows(process, _order(rows, options), options)
    shows_titles = len(names) > 1 or "R" in options
    for index, name in enumerate(folders):
        if shows_titles:
            yield write_text(("\n" if plain or index else "") + f"{name}:\n")
        code = failure if (yield from _list_folder(process, name, options)) else code
    return code


def _list_folder(process: Process, name: str, options: ProgramOptions) -> Run:
    files, path = process.host.files, process.path(name)
    try:
        names = files.children(path)
    except FileError as error:
        yield process.error(f"can't open '{name}': {error}")
        return 1
    children = [child for child in names if not child.startswith(".") or options.has_any("aAf")]
    prefix = f"{path.rstrip('/')}/"
    paths = [(child, f"{prefix}{child}") for child in children]
    if options.has_any("af"):
        folder = files.resolve(path)  # A link to a folder is none itself.
        paths = [(".", folder), ("..", dirname(folder)), *paths]
    ordered = _order((yield from _with_entries(process, paths)), options)
    if options.has_any("ls"):
        yield write_text(f"total {sum(_blocks(entry) for _, entry in ordered)}\n")
    yield from _write_rows(process, ordered, options)
    if "R" in options:
        for child, entry in ordered:
            if child not in (".", "..") and entry.is_directory:
                yield write_text(f"\n{name.rstrip('/')}/{child}:\n")
                yield from _list_folder(process, f"{name.rstrip('/')}/{child}", options)
    return 0


def _blocks(entry: FileEntry) -> int:
    if entry.target:
        return 0
    size = entry.size if entry.data is None else len(entry.data) + entry.disk_zeros
    return (size + 4095) // 4096 * 4


def _with_entries(
    process: Process, paths: Sequence[tuple[str, str]]
) -> Generator[Effect, bytes | None, list[_Row]]:
    """Return the entries of names that have these paths."""
    rows: list[_Row] = []
    for name, path in paths:
        if len(rows) % _ENTRIES_AT_ONCE == _ENTRIES_AT_ONCE - 1:
            yield CommandStart()
        rows.append((name, process.host.files.link_entry(path)))
    return rows


def _order(rows: Sequence[_Row], options: ProgramOptions) -> list[_Row]:
    ordered = sorted(rows, key=itemgetter(0))
    if options.has_any("fU"):
        return ordered
    if "v" in options:
        ordered.sort(key=lambda row: _version_key(row[0]))
    elif "X" in options:
        ordered.sort(key=lambda row: row[0].rpartition(".")[2] if "." in row[0] else "")
    elif "S" in options:
        ordered.sort(key=lambda row: -row[1].size)
    elif "t" in options:
        ordered.sort(key=lambda row: -row[1].modified)
    return ordered[::-1] if "r" in options else ordered


def _version_key(name: str) -> list[tuple[bool, int, str]]:
    """Return the key of `ls -v`, which compares the numbers in names as numbers."""
    # The pieces are alternately another text and a number.
    return [
        (True, int(part), part) if index % 2 else (False, 0, part)
        for index, part in enumerate(_PARTS.split(name))
    ]


def _write_rows(process: Process, rows: Sequence[_Row], options: ProgramOptions) -> Steps:
    lines: list[str] = []
    for name, entry in rows:
        if len(lines) % FILES_AT_ONCE == FILES_AT_ONCE - 1:
            yield CommandStart()
        lines.append(_line(process.host, name, entry, options))
    yield write_text("".join(lines))


def _line(host: Host, name: str, entry: FileEntry, options: ProgramOptions) -> str:
    mark = ""
    name = f'"{name}"' if "Q" in options else name
    if options.has_any("Fp") and entry.is_directory:
        mark = "/"
    elif "F" in options:
        mark = "@" if entry.target else "*" if entry.mode & 0o111 else ""
    prefix = f"{_blocks(entry):4} " if "s" in options else ""
    if not options.has_any("lngoe"):
        return f"{prefix}{name}{mark}\n"
    kind = "d" if entry.is_directory else "l" if entry.target else "-"
    user = host.user_names.get(entry.user, f"{entry.user}")
    group = host.group_names.get(entry.group, f"{entry.group}")
    owners = f"{entry.user:<8} {entry.group:<8}" if "n" in options else f"{user:<8} {group:<8}"
    size = f"{human_size(entry.size):>8}" if "h" in options else f"{entry.size:9}"
    when = datetime.fromtimestamp(entry.modified, UTC)
    arrow = f" -> {entry.target}" if entry.target else ""
    time = f"{when:%Y-%m-%d %H:%M:%S} +0000" if "e" in options else f"{when:%b} {when.day:2} {when:%H:%M}"
    links = 2 if entry.is_directory else 1
    return (
        f"{prefix}{kind}{permissions_text(entry.mode)} {links:4} {owners} {size} {time} {name}{mark}{arrow}\n"
    )


def stat(process: Process) -> Run:
    options = parse_options(
        process.arguments, "ltLfc:", long={"format": "c", "printf": "c", "dereference": "L", "terse": "t"}
    )
    if "f" in options or "t" in options:
        raise ProgramUsageError("-f and -t are not simulated")
    files, code = process.host.files, 0
    for name in options.arguments:
        path = process.path(name)
        try:
            entry = files.entry(path) if "L" in options else files.link_entry(path)
        except FileError as error:
            yield process.error(f"can't stat '{name}': {error}")
            code = 1
            continue
        yield write_text(_stat_text(process, name, path, entry, options.get("c", _STAT_FORMAT)) + "\n")
    return code


_STAT_FORMAT: Final = (
    "  File: %n\n  Size: %s\tBlocks: %b\tIO Block: 4096   %F\nDevice: 0h/0d\tInode: %i\tLinks: %h\n"
    "Access: (%04a/%A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z"
)


def _stat_text(process: Process, name: str, path: str, entry: FileEntry, format_text: str) -> str:
    host = process.host
    kind = "d" if entry.is_directory else "l" if entry.target else "-"
    when = datetime.fromtimestamp(entry.modified, UTC)
    time = f"{when:%Y-%m-%d %H:%M:%S.%f}000 +0000"
    empty = not entry.size and not entry.is_directory
    file_kind = {"d": "directory", "l": "symbolic link"}.get(
        kind, "regular empty file" if empty else "regular file"
    )
    values = {
        "n": name, "N": f"'{name}' -> '{entry.target}'" if entry.target else name, "s": str(entry.size), "a": f"{entry.mode & 0o7777:o}", "A": kind + permissions_text(entry.mode),
        "F": file_kind, "u": str(entry.user), "U": host.user_names.get(entry.user, "UNKNOWN"), "g": str(entry.group), "G": host.group_names.get(entry.group, "UNKNOWN"), "y": time, "x": time, "z": time,
        "Y": str(int(entry.modified)), "X": str(int(entry.modified)), "Z": str(int(entry.modified)), "h": "2" if entry.is_directory else "1",
        "i": str(sum(path.encode()) + len(path) * 131), "b": str(_blocks(entry) * 2), "B": "512", "o": "4096", "f": f"{entry.mode:x}", "m": "/", "d": "0", "%": "%",
    }  # fmt: skip

    def replace(match: re.Match[str]) -> str:
        text = values.get(match[2], match[0])
        width = match[1].lstrip("#+ ")
        return (
            text.rjust(int(width.lstrip("-0")[:4]), "0" if width.startswith("0") else " ")
            if width.strip("-0")
            else text
        )

    return _STAT.sub(replace, format_text)


def disk_usage(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "aHLd:lsxhmkb",
        long={"summarize": "s", "human-readable": "h", "max-depth": "d", "all": "a", "bytes": "b"},
    )
    files, code = process.host.files, 0
    depth = int(options.get("d")) if options.get("d").isdecimal() else 0 if "s" in options else 1 << 20
    for name in options.arguments or ["."]:
        path = process.path(name)
        if not files.exists(path):
            yield process.error(f"{name}: No such file or directory")
            code = 1
            continue
        sizes: dict[str, int] = {}
        for number, child in enumerate(reversed((yield from walk(process, path))), start=1):
            if not number % FILES_AT_ONCE:
                yield CommandStart()
            if not files.rights.may_list(child):
                yield process.error(f"can't open '{name}{child.removeprefix(path)}': Permission denied")
                code = 1
            entry = files.link_entry(child)
            own = entry.size if "b" in options else _blocks(entry) * 1024
            sizes[child] = sizes.get(child, 0) + own
            if child != path:
                sizes[dirname(child)] = sizes.get(dirname(child), 0) + sizes[child]
        for child, size in sizes.items():
            level = child.removeprefix(path).count("/")
            if level <= depth and (files.link_entry(child).is_directory or "a" in options or child == path):
                yield write_text(
                    f"{_size_text(size, options)}\t{name.rstrip('/') or '/'}{child.removeprefix(path)}\n"
                )
    return code


def _size_text(size: int, options: ProgramOptions) -> str:
    if "h" in options:
        return human_size(size)
    return str(size if "b" in options else size // (1 << 20) if "m" in options else size // 1024)


def disk_free(process: Process) -> Run:
    options = parse_options(process.arguments, "PkmhTai", long={"human-readable": "h"})
    if "i" in options:
        raise ProgramUsageError("-i is not simulated")
    disks, code = mounted_disks(process.host.files, process.host.memory_bytes), 0
    if options.arguments:
        selected = []
        for name in options.arguments:
            path = process.path(name)
            if not process.host.files.exists(path):
                yield process.error(f"{name}: can't find mount point")
                code = 1
                continue
            selected.append(next(disk for disk in reversed(disks) if is_below(path, disk.path)))
        disks = selected
    unit = 1 << 20 if "m" in options else 1024
    title = "Size" if "h" in options else "1M-blocks" if "m" in options else "1K-blocks"
    kind = f" {'Type':<10}" if "T" in options else ""
    rows = [f"{'Filesystem':<20}{kind} {title:>10} {'Used':>9} Available Use% Mounted on\n"] if disks else []
    for disk in disks:
        numbers = [disk.size, disk.used, max(disk.size - disk.used, 0)]
        texts = [_free_size(number) if "h" in options else str(number // unit) for number in numbers]
        kind = f" {disk.kind:<10}" if "T" in options else ""
        percent = f"{-(-disk.used * 100 // disk.size) if disk.size else 0:3}%"
        rows.append(
            f"{disk.source:<20}{kind} {texts[0]:>10} {texts[1]:>9} {texts[2]:>9} {percent} {disk.path}\n"
        )
    yield write_text("".join(rows))
    return code


def _free_size(size: int) -> str:
    return "0" if not size else f"{size / 1024:.1f}K" if size < 1024 else human_size(size)


def readlink(process: Process) -> Run:
    options = parse_options(process.arguments, "fnveqsm", long={"canonicalize": "f", "no-newline": "n"})
    files, code = process.host.files, 0
    for name in options.arguments:
        path = process.path(name)
        end = "" if "n" in options else "\n"
        if options.has_any("fem"):
            yield write_text(f"{files.resolve(path)}{end}")
            continue
        target = files.link_entry(path).target if files.has(path) else ""
        code = code or int(not target)
        yield write_text(f"{target}{end}" if target else "")
    return code


def realpath(process: Process) -> Run:
    options = parse_options(process.arguments, "emsqz")
    code = 0
    for name in options.arguments or ["."]:
        path = process.host.files.resolve(process.path(name))
        parent_exists = process.host.files.exists(dirname(path))
        if not parent_exists and "m" not in options:
            yield process.error(f"{name}: No such file or directory")
            code = 1
            continue
        yield write_text(f"{path}\n")
    return code


def make_temporary(process: Process) -> Run:
    options = parse_options(
        process.arguments, "dqutp:", long={"directory": "d", "quiet": "q", "dry-run": "u", "tmpdir": "p"}
    )
    template = options.arguments[0] if options.arguments else "tmp.XXXXXX"
    folder = options.get("p") or process.environment.get("TMPDIR") or "/tmp"  # noqa: S108 - of a simulated container
    if not options.arguments or "p" in options or "t" in options:
        template = join(folder, template)
    head = template.rstrip("X")
    count = len(template) - len(head)
    if count < 3:
        raise ProgramUsageError(f"{template}: Invalid argument")
    files = process.host.files
    number = process.host.changes * 7919 + int(process.host.now_running().timestamp())
    while True:
        number = (number * 1103515245 + 12345) % (1 << 48)
        suffix = "".join(_LETTERS[number // 62**place % 62] for place in range(count))
        path = process.path(head + suffix)
        if not files.exists(path):
            break
    try:
        if "d" in options:
            files.make_directory(path, modified=modification_time(process))
            files.change(path, mode=0o700)
        elif "u" not in options:
            files.write(path, b"", modified=modification_time(process))
            files.change(path, mode=0o600)
    except FileError as error:
        raise ProgramUsageError(f"{template}: {error}") from error
    yield write_text(f"{head}{suffix}\n")
    return 0


def base_name(process: Process) -> Run:
    options = parse_options(process.arguments, "as:z")
    arguments = options.arguments
    if not arguments:
        raise ProgramUsageError("usage: basename FILE [SUFFIX]")
    suffix = options.get("s") or (arguments[1] if len(arguments) > 1 and "a" not in options else "")
    for argument in arguments if options.has_any("as") else arguments[:1]:
        name = basename(argument.rstrip("/")) or argument[:1]
        yield write_text((name.removesuffix(suffix) if name != suffix else name) + "\n")
    return 0


def directory_name(process: Process) -> Run:
    if not process.arguments:
        raise ProgramUsageError("usage: dirname FILENAME")
    for argument in process.arguments:
        stripped = argument.rstrip("/")
        folder = dirname(stripped).rstrip("/") or dirname(stripped)
        yield write_text((folder or ("/" if argument.startswith("/") else ".")) + "\n")
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {
    "ls": ls,
    "stat": stat,
    "du": disk_usage,
    "df": disk_free,
    "readlink": readlink,
    "realpath": realpath,
    "mktemp": make_temporary,
    "basename": base_name,
    "dirname": directory_name,
}
