"""Programs that change the mode and the owner of files: chmod, chown, chgrp and install."""

from collections.abc import Mapping
from posixpath import basename, dirname, join
from typing import Final

from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Steps,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .files import creation_problem, for_each_file, modification_time, plain_problem
from .inputs import FILES_AT_ONCE, walk
from .modes import parse_mode, permissions_text

_LONG: Final = {
    "recursive": "R",
    "no-dereference": "h",
    "verbose": "v",
    "changes": "c",
    "silent": "f",
    "quiet": "f",
}


def chmod(process: Process) -> Run:
    arguments = list(process.arguments)
    flags = [
        text for text in arguments if text.startswith("-") and set(text[1:]) <= set("Rvcf") and text != "-"
    ]
    mode, *names = [text for text in arguments if text not in flags and text != "--"] or [""]
    if not names:
        raise ProgramUsageError("usage: chmod [-Rcvf] MODE[,MODE]... FILE...")
    files, letters = process.host.files, "".join(flags)

    def change(name: str) -> Steps:
        path = process.path(name)
        for number, each in enumerate(
            (yield from walk(process, path)) if "R" in letters else [path], start=1
        ):
            if not number % FILES_AT_ONCE:
                yield CommandStart()
            entry = files.entry(each)
            changed = parse_mode(mode, entry.mode, is_directory=entry.is_directory)
            files.change(each, mode=changed)
            process.host.changes += changed != entry.mode
            if "v" in letters or ("c" in letters and changed != entry.mode):
                label = name + each.removeprefix(path)
                yield write_text(
                    f"mode of '{label}' changed to {changed:04o} ({permissions_text(changed)})\n"
                )

    return (yield from for_each_file(process, names, plain_problem, change))


_USUAL: Final = {"root": 0, "nobody": 65534, "nogroup": 65534, "daemon": 1, "wheel": 0}


def _owner(process: Process, text: str, *, is_group: bool) -> dict[str, int]:
    """Return the attributes that the argument of chown or chgrp sets."""
    user, _, group = ("", "", text) if is_group else text.replace(".", ":").partition(":")
    attributes = {}
    for name, value in (("user", user), ("group", group)):
        if value:
            names = process.host.user_names if name == "user" else process.host.group_names
            number = next((number for number, known in names.items() if known == value), None)
            number = _USUAL.get(value) if number is None else number
            if number is None and not value.isdecimal():
                raise ProgramUsageError(
                    f"unknown user {value}" if name == "user" else f"unknown group {value}"
                )
            attributes[name] = int(value[:9]) if number is None else number
    return attributes


def chown(process: Process) -> Run:
    options = parse_options(process.arguments, "RhHLPcvf", long=_LONG)
    if len(options.arguments) < 2:
        raise ProgramUsageError(f"usage: {process.name} [-RhLHPcvf] USER[:[GRP]] FILE...")
    attributes = _owner(process, options.arguments[0], is_group=process.name == "chgrp")
    files = process.host.files

    def change(name: str) -> Steps:
        path = process.path(name)
        for number, each in enumerate(
            (yield from walk(process, path)) if "R" in options else [path], start=1
        ):
            if not number % FILES_AT_ONCE:
                yield CommandStart()
            entry = files.entry(each)
            files.change(each, **attributes)
            changed = files.entry(each)
            if "v" in options or ("c" in options and changed != entry):
                label = name + each.removeprefix(path)
                yield write_text(f"changed ownership of '{label}' to {changed.user}:{changed.group}\n")
        process.host.changes += 1

    return (yield from for_each_file(process, options.arguments[1:], plain_problem, change))


def install(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "cdDpsm:o:g:t:",
        long={"mode": "m", "owner": "o", "group": "g", "directory": "d", "target-directory": "t"},
    )
    attributes = {
        "mode": parse_mode(options.get("m", "755"), 0),
        **_owner(process, options.get("o"), is_group=False),
        **_owner(process, options.get("g"), is_group=True),
    }
    files = process.host.files

    def make_directory(name: str) -> Steps:
        files.make_directory(process.path(name), parents=True, modified=modification_time(process))
        files.change(process.path(name), **attributes)
        return
        yield

    names = list(options.arguments)
    if "d" in options:
        return (yield from for_each_file(process, names, creation_problem, make_directory))
    last = process.path(options.get("t") if "t" in options else names.pop() if len(names) > 1 else "")

    def copy(name: str) -> Steps:
        is_directory = files.exists(last) and files.entry(last).is_directory
        target = join(last, basename(name)) if is_directory else last
        if "D" in options:
            files.make_directory(dirname(target), parents=True, modified=modification_time(process))
        entry = files.entry(process.path(name))
        if entry.data is None:
            raise FileError("Is a directory")
        data = files.read(process.path(name))
        files.write(target, data, modified=entry.modified if "p" in options else modification_time(process))
        files.change(target, **attributes)
        return
        yield

    def problem(name: str, error: FileError) -> str:
        return f"can't open '{name}': {error}"

    return (yield from for_each_file(process, names, problem, copy))


PROGRAMS: Final[Mapping[str, Program]] = {"chmod": chmod, "chown": chown, "chgrp": chown, "install": install}
