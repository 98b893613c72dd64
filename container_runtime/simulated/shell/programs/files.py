"""Programs that read and change files: cat, mkdir, rm, cp, mv, ln and touch."""

from collections.abc import Callable, Generator, Mapping, Sequence
from math import inf
from posixpath import basename, dirname, join, normpath, relpath
from typing import Final

from mockube.container_runtime.simulated.shell.devices import is_endless, is_special, read_device
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Effect,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Sleep,
    Steps,
    read_input,
    write_text,
)
from mockube.container_runtime.simulated.shell.redirection import open_output
from mockube.container_runtime.simulated.shell.streams import FileStream, is_read_by_program
from mockube.container_runtime.simulated.shell.vfs.file_entry import (
    AccessDenied,
    FileEntry,
    FileError,
    NoSpace,
    NoSuchFile,
)

from .dates import parse_stamp, parse_time_text
from .endless_reads import copies_for_ever
from .inputs import BLOCK, FILES_AT_ONCE, open_descriptor, read_path, walk
from .modes import parse_mode

_REMOVED_AT_ONCE: Final = 20


def modification_time(process: Process) -> float:
    process.host.changes += 1
    return process.host.now_running(is_shown=True).timestamp()


def cat(process: Process) -> Run:
    options = parse_options(process.arguments, "nbvteAuETs", long={"number": "n", "show-all": "A"})
    for letter in "bvteAETs":
        if letter in options:
            raise ProgramUsageError(f"-{letter} is not simulated")
    code, line = 0, 0
    for name in options.arguments or ["-"]:
        try:
            stream = None if name == "-" else open_descriptor(process, name)
            if name == "-" or stream is not None:
                read = read_input if stream is None else stream.read
                while block := (yield from read(BLOCK)):
                    data, line = _number_lines(block, line) if "n" in options else (block, line)
                    yield Output(1, data)
                continue
            if copies_for_ever(process, name):
                yield Sleep(inf, cores=1.0)
            output = process.descriptors.get(1)
            if is_endless(process.path(name)) and isinstance(output, FileStream):
                output.fill()
                yield process.error(f"write error: {NoSpace()}")
                return 1
            while is_endless(process.path(name)) and is_read_by_program(process):
                yield Output(1, read_device(process.host, process.path(name)) or b"")
            data = yield from read_path(process, name)
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


Action = Callable[[str], Steps]
Problem = Callable[[str, FileError], str]


def for_each_file(process: Process, names: Sequence[str], problem: Problem, action: Action) -> Run:
    """Do something with each file; report the files for which it fails, with the message that `problem` returns."""
    code = 0
    for number, name in enumerate(names, start=1):
        if not number % FILES_AT_ONCE:
            yield CommandStart()
        try:
            yield from action(name)
        except FileError as error:
            yield process.error(problem(name, error))
            code = 1
    return code


def mkdir(process: Process) -> Run:
    options = parse_options(process.arguments, "pvm:", long={"parents": "p", "mode": "m", "verbose": "v"})
    if not options.arguments:
        raise ProgramUsageError("usage: mkdir [-m MODE] [-p] DIRECTORY...")
    files = process.host.files

    def make(name: str) -> Steps:
        path, existed = process.path(name), files.exists(process.path(name))
        mode = 0o777 & ~process.host.umask
        files.make_directory(path, parents="p" in options, modified=modification_time(process), mode=mode)
        if "m" in options:
            files.change(path, mode=parse_mode(options.get("m"), 0o777))
        if "v" in options and not existed:
            yield write_text(f"mkdir: created directory '{name}'\n")

    return (yield from for_each_file(process, options.arguments, creation_problem, make))


def creation_problem(name: str, error: FileError) -> str:
    return f"can't create directory '{name}': {error}"


def rmdir(process: Process) -> Run:
    long = {"parents": "p", "ignore-fail-on-non-empty": "ignore"}
    options = parse_options(process.arguments, "p", long=long)
    files = process.host.files

    def remove(name: str) -> Steps:
        while name:
            path = process.path(name)
            if list(files.children(path)):
                if "ignore" in options:
                    return
                raise FileError("Directory not empty")
            files.remove(path, recursive=True)
            process.host.changes += 1
            name = dirname(name.rstrip("/")) if "p" in options else ""
        return
        yield

    return (
        yield from for_each_file(process, options.arguments, lambda name, error: f"'{name}': {error}", remove)
    )


def touch(process: Process) -> Run:
    long = {"no-create": "c", "date": "d", "reference": "r", "no-dereference": "h"}
    options = parse_options(process.arguments, "chamd:t:r:", long=long)
    files, now = process.host.files, process.host.now_running(is_shown=True)
    modified: float | None = None
    if "d" in options:
        modified = parse_time_text(options.get("d"), now).timestamp()
    elif "t" in options:
        modified = parse_stamp(options.get("t"), now).timestamp()
    changes_time = "a" not in options or "m" in options

    def change(name: str) -> Steps:
        path = process.path(name)
        at = files.entry(process.path(options.get("r"))).modified if "r" in options else modified
        at = modification_time(process) if at is None else at
        if not files.exists(path):
            if "c" not in options:
                files.write(path, b"", append=True, modified=at, mode=0o666 & ~process.host.umask)
        elif changes_time:
            process.host.changes += 1
            files.change(path, modified=at)
        return
        yield

    return (yield from for_each_file(process, options.arguments, plain_problem, change))


def plain_problem(name: str, error: FileError) -> str:
    return f"{name}: {error}"


def confirm(process: Process, question: str) -> Generator[Effect, bytes | None, bool]:
    """Ask whether to go on, and read the answer from the input."""
    yield Output(2, f"{process.name}: {question}? ".encode("utf-8", "surrogateescape"))
    answer = b""
    while (letter := (yield from read_input(1))) not in (b"", b"\n"):
        answer += letter if len(answer) < 1 else b""
    return answer in (b"y", b"Y")


def _remove(process: Process, path: str, *, recursive: bool = True) -> Steps:
    for number, _ in enumerate(process.host.files.removing(path, recursive=recursive), start=1):
        if not number % _REMOVED_AT_ONCE:
            yield CommandStart()


def rm(process: Process) -> Run:
    options = parse_options(
        process.arguments, "rRfivd", long={"recursive": "r", "force": "f", "dir": "d", "verbose": "v"}
    )
    if not options.arguments and "f" not in options:
        raise ProgramUsageError("usage: rm [-irf] FILE...")
    files = process.host.files
    asks = "i" in options and "f" not in options

    def remove(name: str) -> Steps:
        path = process.path(name)
        if normpath(name) in (".", "..") or path == "/":
            raise FileError("Invalid argument")
        if asks and files.exists(path) and not (yield from confirm(process, f"remove '{name}'")):
            return
        is_empty = "d" in options and files.exists(path) and files.entry(path).is_directory
        is_empty = is_empty and not list(files.children(path))
        try:
            yield from _remove(process, path, recursive=options.has_any("rR") or is_empty)
        except NoSuchFile:
            if "f" in options:
                return
            raise
        process.host.changes += 1
        if "v" in options:
            yield write_text(f"removed '{name}'\n")

    def problem(name: str, error: FileError) -> str:
        return f"can't remove '{name}': {error}"

    return (yield from for_each_file(process, options.arguments, problem, remove))


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

    def transfer(name: str) -> Steps:
        target = _target(process, name, last, options, is_directory=is_directory)
        if not (yield from _may_overwrite(process, name, target, options)):
            return
        try:
            if not moves and (is_special(process.path(name)) or is_special(target)):
                output = open_output(process, target)
                yield from output.write((yield from read_path(process, name)))
            else:
                yield from _copy(process, name, target, options, moves=moves)
        except NoSuchFile as error:
            if not moves and files.has(process.path(name)):
                raise FileError(f"can't create '{last}': {error}") from error
            raise FileError(f"can't {'rename' if moves else 'stat'} '{name}': {error}") from error
        except FileError as error:
            raise FileError(_copy_problem(name, last, str(error), moves=moves)) from error
        if "v" in options:
            label = join(last, basename(process.path(name))) if is_directory and "T" not in options else last
            yield write_text(f"'{name}' -> '{label}'\n")

    return (yield from for_each_file(process, names, lambda _, error: str(error), transfer))


def _target(process: Process, name: str, last: str, options: ProgramOptions, *, is_directory: bool) -> str:
    """Return the path that a file gets."""
    target = process.path(last)
    if not is_directory:
        return target
    if "parents" in options:
        target = join(target, name.lstrip("/"))
        process.host.files.make_directory(dirname(target), parents=True, modified=modification_time(process))
        return target
    return target if "T" in options else join(target, basename(process.path(name)))


def _may_overwrite(
    process: Process, name: str, target: str, options: ProgramOptions
) -> Generator[Effect, bytes | None, bool]:
    """Return whether the options let a file replace the target."""
    files = process.host.files
    if not options.has_any("niu") or not files.exists(target):
        return True
    if "n" in options:
        return False
    source = process.path(name)
    if "u" in options and files.exists(source):
        return files.entry(source).modified > files.entry(target).modified
    return "i" not in options or (yield from confirm(process, f"overwrite '{target}'"))


_UNREADABLE: Final = "unreadable"


def _copy_problem(name: str, last: str, problem: str, *, moves: bool) -> str:
    if problem == "omitting directory":
        return f"omitting directory '{name}'"
    if problem == _UNREADABLE:
        return f"can't open '{name}': Permission denied"
    return f"can't {'rename' if moves else 'create'} '{name if moves else last}': {problem}"


def _copy(process: Process, name: str, target: str, options: ProgramOptions, *, moves: bool) -> Steps:
    files, source = process.host.files, process.path(name)
    recursive = moves or options.has_any("rRa")
    keeps = moves or options.has_any("apd")
    keeps_links = (recursive or options.has_any("Pd")) and "L" not in options
    source_entry = files.link_entry(source) if recursive or keeps_links else files.entry(source)
    if source_entry.is_directory and not recursive:
        raise FileError("omitting directory")
    if target == source or target.startswith(f"{source}/"):
        raise FileError("Invalid argument" if moves else "is a subdirectory of itself")
    if moves and _move_in_one_step(process, source, target):
        return
    for path in (yield from walk(process, source)):
        yield CommandStart()
        target_path = target + path.removeprefix(source)
        entry = files.link_entry(path) if keeps_links else files.entry(path)
        modified = entry.modified if keeps else modification_time(process)
        if entry.target:
            if files.has(target_path):
                files.remove(target_path)
            files.link(target_path, entry.target, modified=modified)
        elif entry.data is None:
            files.make_directory(target_path, parents=files.exists(target_path), modified=modified)
            files.change(target_path, mode=entry.mode)
        else:
            _copy_file(process, entry, path, target_path, modified, keeps=keeps)
        if moves:
            files.restore(target_path, entry)
    if moves:
        yield from _remove(process, source)


def _move_in_one_step(process: Process, source: str, target: str) -> bool:
    """Move a file, if its file system can do that in one step; else make way for its copy, and return False."""
    files = process.host.files
    files.require_removable(source)
    if (
        files.has(target)
        and not files.link_entry(target).is_directory
        and not files.link_entry(source).is_directory
    ):
        files.require_removable(target)
        if files.rename(source, target):
            return True
    _make_way(process, target)
    return files.rename(source, target)


def _make_way(process: Process, target: str) -> None:
    """Remove what a moved file replaces."""
    files = process.host.files
    if files.has(target):
        if files.link_entry(target).is_directory and list(files.children(target)):
            raise FileError("Directory not empty")
        files.remove(target, recursive=True)


def _copy_file(
    process: Process, entry: FileEntry, source: str, target: str, modified: float, *, keeps: bool
) -> None:
    files = process.host.files
    is_new = not files.has(target)
    if entry.is_unkept and not files.place(files.resolve(target)).files.inodes.is_folder:
        files.write(target, b"", zeros=entry.zeros, modified=modified)
        files.change(target, is_unkept=True)
        return
    try:
        readable = files.readable(source)
    except AccessDenied as error:
        raise FileError(_UNREADABLE) from error
    files.write(target, readable.data or b"", zeros=readable.zeros, modified=modified)
    if is_new or keeps:
        files.change(target, mode=entry.mode if keeps else entry.mode & ~process.host.umask)
    if keeps and process.host.user == 0:
        files.change(target, user=entry.user, group=entry.group)
    if not files.knows(source):
        files.change(target, is_guess=True)  # nobody knows its content either


def ln(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "sfnvrTt:",
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

    def link(name: str) -> Steps:
        link_path = join(path, basename(name.rstrip("/"))) if is_directory else path
        target = relpath(process.path(name), dirname(link_path)) if "r" in options else name
        if "f" in options and files.has(link_path):
            files.remove(link_path)
        files.link(link_path, target, modified=modification_time(process))
        if "v" in options:
            label = join(last, basename(link_path)) if is_directory else last
            yield write_text(f"'{label}' -> '{target}'\n")

    return (yield from for_each_file(process, names, lambda _, error: plain_problem(last, error), link))


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
}
