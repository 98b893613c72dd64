"""The search for programs: those that are simulated, and scripts in files."""

import re
from collections.abc import Iterator
from posixpath import join
from typing import Final

from mockube.container_runtime.behavior import NOT_FOUND
from mockube.container_runtime.extras import hint, missing_distribution
from mockube.container_runtime.images.programs import ImagePrograms
from mockube.container_runtime.start_errors import is_a_directory, no_such_file, not_executable, not_in_path

from . import limits
from .messages import WordedError
from .process import Process, Program, UnknownProgram
from .vfs.file_entry import NameTooLong
from .vfs.file_system import FileSystem

NOT_EXECUTABLE: Final = 126
MAX_SHEBANG: Final = 256
"""Linux reads no more of a file to find its interpreter."""
DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAM_DATA: Final = b"\x7fELF\0"
"""The contents of a program that a package has installed."""
_FOLDERS_OF_SYSTEMS: Final = frozenset(
    [
        "/",
        "/bin",
        "/dev",
        "/etc",
        "/home",
        "/lib",
        "/proc",
        "/root",
        "/run",
        "/sbin",
        "/sys",
        "/tmp",  # noqa: S108 - of a simulated container
        "/usr",
        "/usr/bin",
        "/usr/lib",
        "/var",
    ]
)
_FILES_OF_SYSTEMS: Final = frozenset(
    ["/etc/group", "/etc/hostname", "/etc/hosts", "/etc/os-release", "/etc/passwd", "/etc/resolv.conf"]
)
_BLANKS: Final = re.compile(r"[ \t]+")
_MAX_CHARACTER: Final = 4
"""The bytes of a character at most."""
_POINTER: Final = 9
"""The bytes that an argument takes beside its text."""
_FOLDERS: Final = frozenset(DEFAULT_PATH.split(":"))


class CommandNotFound(WordedError):
    """A program cannot be executed."""

    def __init__(self, message: str, bash: str | None = None, *, code: int = NOT_FOUND) -> None:
        super().__init__(message, bash)
        self.code = code


def find_program(process: Process, shell: str = "sh", *, is_builtin: bool = False) -> Program:
    """Return a program by its name or path; raise `CommandNotFound`, or `UnknownProgram` if the host is strict.

    A script that names no interpreter runs in the `shell`; the kernel, without one, does not execute it. A builtin of the shell needs no program of the image.
    """
    name = process.argv[0]
    if not name:
        raise CommandNotFound("not found", "command not found")
    path = _script_path(process, name)
    if not is_builtin:
        if not path and is_absent(process, name):
            raise CommandNotFound(
                "not found", "No such file or directory" if "/" in name else "command not found"
            )
        if _is_too_long(process):
            raise CommandNotFound("Argument list too long", code=NOT_EXECUTABLE)
    if path:
        return _file_program(process, path, shell)
    program = process.host.programs.get(name.rpartition("/")[2])
    if program is not None:
        return _with_short_name(program) if "/" in name else program
    process.host.note_call(process)
    if process.host.is_strict:
        raise UnknownProgram(name)
    if process.host.installed is not None and process.host.installed.has(name.rpartition("/")[2]):
        raise CommandNotFound(
            f"not simulated{hint(missing_distribution(name, on_node=process.host.is_node))}"
        )
    raise CommandNotFound("not found", "No such file or directory" if "/" in name else "command not found")


def _is_too_long(process: Process) -> bool:
    """Return whether the kernel does not execute a program, because of its arguments and variables."""
    arguments, variables = process.argv, process.environment
    texts = [*arguments, *variables, *variables.values()]
    if sum(map(len, texts)) + _POINTER * len(texts) < limits.MAX_ARGUMENT // _MAX_CHARACTER:
        return False
    sizes = [len(text.encode("utf-8", "surrogateescape")) for text in texts]
    return (
        max(sizes) >= limits.MAX_ARGUMENT
        or sum(sizes) + _POINTER * (len(arguments) + len(variables)) > limits.MAX_ARGUMENTS
    )


def is_absent(process: Process, name: str) -> bool:
    """Return whether the container certainly has no program of a name or path, because its image and its files have none."""
    installed, files = process.host.installed, process.host.files
    if "$(" in name:
        return False
    if _is_hidden(process, name):
        return True
    if installed is None or name in installed.names:
        return False
    if name.startswith("-") and not files.unknown.is_mounted(process.path(name)):
        return True  # An option for a program that is not there.
    if "/" not in name:
        folders = (process.environment.get("PATH") or DEFAULT_PATH).split(":")
        paths = [process.path(join(folder or ".", name)) for folder in folders]
        if any(files.unknown.is_mounted(path) or files.knows(path) for path in paths):
            return False
        return installed.has(name) is False
    path = files.resolve(process.path(name))
    if files.unknown.is_mounted(path) or files.knows(path):
        return False
    folder, _, short_name = path.rpartition("/")
    return installed.has(short_name) is False if folder in _FOLDERS else not files.unknown.may_exist(path)


def _is_hidden(process: Process, name: str) -> bool:
    """Return whether volumes hide the folders of the image that have a program, and have none of its name themselves."""
    installed, files = process.host.installed, process.host.files
    if "/" in name:
        path = files.resolve(process.path(name))
        folder, _, short_name = path.rpartition("/")
        paths = next((each for each in _folders(installed, short_name) if folder in each), (folder,))
        return any(map(files.unknown.hides, paths)) and not any(
            _has_file(files, f"{each}/{short_name}") for each in paths
        )
    folders = [*_folders(installed, name)]
    if not folders or not all(any(map(files.unknown.hides, paths)) for paths in folders):
        return False
    searched = (process.environment.get("PATH") or DEFAULT_PATH).split(":")
    return not any(_has_file(files, process.path(join(folder or ".", name))) for folder in searched)


def _has_file(files: FileSystem, path: str) -> bool:
    """Return whether a path has a file of a volume or with content; an empty one stands for a program of the image, which may be elsewhere."""
    return files.knows(path) and (files.unknown.hides(path) or bool(files.entry(path).size))


def _folders(installed: ImagePrograms | None, name: str) -> Iterator[tuple[str, ...]]:
    return iter(()) if installed is None else installed.folders(name)


def start_problem(process: Process) -> str:
    """Return why the container runtime cannot start a process; "" if it can, as far as that is known."""
    name = process.argv[0]
    try:
        return _problem_of_file(process, name)
    except NameTooLong:
        return f'exec: "{name}": stat {name}: file name too long'


def _problem_of_file(process: Process, name: str) -> str:
    if is_absent(process, name):
        return no_such_file(name) if "/" in name else not_in_path(name)
    files, path = process.host.files, process.path(name)
    if "/" not in name:
        return ""
    if not files.knows(files.resolve(path)):
        return _problem_of_system(process, name, path)
    entry = files.entry(path)
    if entry.is_directory:
        return is_a_directory(name)
    is_script = bool(entry.size) or not (entry.is_guess or path.rpartition("/")[2] in process.host.programs)
    return not_executable(name) if is_script and not entry.mode & 0o111 else ""


def _problem_of_system(process: Process, name: str, path: str) -> str:
    """Return why a path cannot be executed that a known image with a system has certainly, as a folder or as a file of data."""
    installed = process.host.installed
    if installed is None or installed.lacks_system or not installed.has("sh"):
        return ""
    if path in _FOLDERS_OF_SYSTEMS:
        return is_a_directory(name)
    return not_executable(name) if path in _FILES_OF_SYSTEMS else ""


def note_unknown(process: Process, error: CommandNotFound) -> None:
    """Report a program that does not run, because it is not simulated, to the host; not one that the image does not have."""
    name = process.argv[0]
    if error.code == NOT_FOUND and name and not is_absent(process, name):
        process.host.on_unknown(name)


def program_path(process: Process) -> str:
    """Return the path of a program that was found."""
    name = process.argv[0]
    if "/" in name:
        return name
    return _script_path(process, name) or f"/usr/bin/{name}"


def _script_path(process: Process, name: str) -> str:
    """Return the path of a file of that name with content; "" if there is none."""
    files = process.host.files
    if "/" in name:
        path = process.path(name)
        if not files.knows(files.resolve(path)):
            return ""
        entry = files.entry(path)
        is_program = entry.data == PROGRAM_DATA or (
            not entry.data and (entry.is_guess or path.rpartition("/")[2] in process.host.programs)
        )
        return "" if is_program and not entry.is_directory else path
    if name in process.host.programs:
        return ""
    for folder in (process.environment.get("PATH") or DEFAULT_PATH).split(":"):
        path = process.path(join(folder or ".", name))
        if files.knows(path) and not (entry := files.entry(path)).is_directory and entry.mode & 0o111:
            return "" if entry.data == PROGRAM_DATA else path
    return ""


def _file_program(process: Process, path: str, shell: str) -> Program:
    files = process.host.files
    entry = files.entry(path)
    if entry.is_directory:
        raise CommandNotFound("Permission denied", "Is a directory", code=NOT_EXECUTABLE)
    if not entry.mode & 0o111:
        raise CommandNotFound("Permission denied", code=NOT_EXECUTABLE)
    data = (entry if entry.is_unkept else files.content(path)).data or b""
    if entry.is_unkept or b"\0" in data[:MAX_SHEBANG] or not (shell or data.startswith(b"#!")):
        raise CommandNotFound(
            "Exec format error", "cannot execute binary file: Exec format error", code=NOT_EXECUTABLE
        )
    argv = [shell]
    if data.startswith(b"#!"):
        line = data[2:MAX_SHEBANG].partition(b"\n")[0].decode("utf-8", "replace")
        argv = _BLANKS.split(line.strip(" \t"), maxsplit=1)
        if argv[0].rpartition("/")[2] == "env" and len(argv) > 1 and not argv[1].endswith("\r"):
            argv = argv[1].removeprefix("-S").split()
    name = process.name if "/" in process.name else path
    interpreter = process.with_arguments([*argv, name, *process.arguments])
    program = process.host.programs.get(argv[0].rpartition("/")[2])
    is_missing = argv[0].endswith("\r") or is_absent(process, argv[0])
    if program is None or is_missing:
        if process.host.is_strict and not is_missing:
            raise UnknownProgram(argv[0])
        raise CommandNotFound("not found", "cannot execute: required file not found")
    return _bind(program, _strip_folder(interpreter))


def _bind(program: Program, interpreter: Process) -> Program:
    return lambda _: program(interpreter)


def _with_short_name(program: Program) -> Program:
    return lambda process: program(_strip_folder(process))


def _strip_folder(process: Process) -> Process:
    name = process.argv[0].rpartition("/")[2]
    if "/" in process.argv[0]:
        process.path_name = process.argv[0]
    return process.with_arguments([name, *process.arguments])
