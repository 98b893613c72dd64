"""`python`: its options, and the modules that its scripts may import."""

import json  # noqa: TID251 - its output is what json.tool prints
import re
from collections.abc import Generator
from typing import Final

from mockube.container_runtime.behavior import NOT_FOUND
from mockube.container_runtime.simulated.shell import limits as shell_limits
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Input,
    Process,
    Run,
    UnknownProgram,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from . import clocks, data, http_server, system
from .interpreter import PythonInterpreter
from .library import SOURCES
from .values import Builtin, NotSimulatedInPython, SourceFile, Value

_DEFAULT_VERSION: Final = (3, 11, 9)
"""The version if the image does not say it: what is not known of an image is most often that of Debian."""
_PATCH: Final = {8: 20, 9: 21, 10: 16, 11: 11, 12: 9, 13: 2, 14: 0}
_TAG: Final = re.compile(r"(?:.*/)?python:(\d{1,2})\.(\d{1,2})(?:\.(\d{1,2}))?(?![\d.])")
_PLAIN: Final = re.compile(r"(?:(?:docker\.io|index\.docker\.io)/)?(?:library/)?python(?:[:@].*)?")
_VALUE_OPTIONS: Final = "WXcm"
_MAX_INPUT: Final = shell_limits.MAX_SCRIPT

PythonInterpreter.makers = {
    "time": clocks.time_module, "datetime": clocks.datetime_module, "random": clocks.random_module,
    "uuid": clocks.uuid_module, "os": system.os_module, "os.path": system.path_module, "sys": system.sys_module,
    "signal": system.signal_module, "threading": system.threading_module, "socket": system.socket_module,
    "json": data.json_module, "math": data.math_module, "hashlib": data.hashlib_module, "base64": data.base64_module,
    "collections": data.collections_module, "itertools": data.itertools_module, "functools": data.functools_module,
    "string": data.string_module, "copy": data.copy_module, "traceback": data.traceback_module,
    "typing": data.typing_module, "gc": data.empty_module, **SOURCES,
}  # fmt: skip


class _Options:
    """The options before the script; `script` is the text of `-c`, `module` that of `-m`."""

    def __init__(self, arguments: list[str]) -> None:
        self.letters = ""
        self.script: str | None = None
        self.module = ""
        while (
            arguments
            and arguments[0].startswith("-")
            and arguments[0] != "-"
            and not (self.script or self.module)
        ):
            option = arguments.pop(0)
            if option == "--version":
                self.letters += "V"
                continue
            letters, last, value = _split_option(option)
            self.letters += letters + last
            following = arguments.pop(0) if last and not value and arguments else None
            if last == "c":
                self.script = value or following
            elif last == "m":
                self.module = value or following or ""
        self.arguments = arguments


def _split_option(option: str) -> tuple[str, str, str]:
    """Return the letters without a value, the letter that has one, and the value, such as those of `-uc`."""
    for index, letter in enumerate(option[1:], 1):
        if letter in _VALUE_OPTIONS:
            return option[1:index], letter, option[index + 1 :]
    return option[1:], "", ""


def python(process: Process) -> Run:
    """Run a script; what it needs and is not simulated fails as a program that is not simulated does."""
    try:
        return (yield from _python(process, is_old=False))
    except NotSimulatedInPython as error:
        if process.host.is_strict:
            raise
        process.host.on_unknown(str(error))
        yield process.error(f"{error} is not simulated")
        return NOT_FOUND


def python2(process: Process) -> Run:
    """Run SimpleHTTPServer, the only program of Python 2 that is simulated."""
    return (yield from _python(process, is_old=True))


def _python(process: Process, *, is_old: bool) -> Run:
    options = _Options(list(process.arguments))
    is_server = options.module in http_server.MODULES
    ports = http_server.ports_of(options.arguments, process.directory) if is_server else None
    process.host.note_call(process, ports=ports)
    if is_server:
        return (
            yield from http_server.serve(options.arguments, is_unbuffered=_is_unbuffered(process, options))
        )
    if is_old:
        raise UnknownProgram(process.path_name or process.name)
    version = version_of(process.host.image)
    if "V" in options.letters:
        yield write_text(f"Python {'.'.join(map(str, version))}\n")
        return 0
    if options.letters.endswith(("c", "m")) and options.script is None and not options.module:
        yield process.report(f"Argument expected for the -{options.letters[-1]} option")
        return 2
    if options.module == "json.tool":
        return (yield from _json_tool(process, options.arguments))
    if options.module:
        raise NotSimulatedInPython(f"python -m {options.module}")
    return (yield from _run(process, options, version))


def version_of(image: str) -> tuple[int, ...]:
    """Return the version of Python in an image, as far as its tag says it."""
    match = _TAG.match(image)
    if match is None:
        return _DEFAULT_VERSION
    minor = int(match[2])
    return int(match[1]), minor, int(match[3]) if match[3] else _PATCH.get(minor, 0)


def _run(process: Process, options: _Options, version: tuple[int, ...]) -> Run:
    arguments = options.arguments
    if options.script is not None:
        name, text = "<string>", options.script
        arguments = ["-c", *arguments]
    elif arguments and arguments[0] != "-":
        name = arguments[0]
        try:
            text = _read(process, name)
        except FileError as error:
            number = 21 if "directory" in str(error) and "No such" not in str(error) else 2
            yield process.report(
                f"{process.name}: can't open file '{process.path(name)}': [Errno {number}] {error}"
            )
            return 2
    else:
        if process.host.has_terminal:
            raise UnknownProgram(process.name)  # its interactive mode
        name, arguments = "<stdin>", arguments or [""]
        text = yield from _read_input()
    machine = PythonInterpreter(
        process,
        version,
        clocks.pod_random(process.host.name),
        is_unbuffered=_is_unbuffered(process, options),
    )
    machine.is_plain_image = _PLAIN.fullmatch(process.host.image) is not None
    machine.arguments = list(arguments)
    machine.start()
    machine.builtins["open"] = Builtin("open", system.open_file)
    variables: dict[str, Value] = {"__name__": "__main__"}
    if name not in ("<string>", "<stdin>"):
        variables["__file__"] = name
        machine.folder = process.path(name).rpartition("/")[0] or "/"
    file = SourceFile(name, text, has_lines=name not in ("<string>", "<stdin>"))
    return (yield from machine.run_script(file, text, variables))


def _is_unbuffered(process: Process, options: _Options) -> bool:
    return "u" in options.letters or bool(process.environment.get("PYTHONUNBUFFERED"))


def _read(process: Process, name: str) -> str:
    files, path = process.host.files, process.path(name)
    if not files.exists(path) and files.unknown.may_exist(path):
        if process.host.is_strict:
            raise UnknownProgram(name)
        raise FileError("No such file or directory")
    return files.read(path).decode("utf-8", "replace")


def _read_input() -> Generator[Effect, bytes | None, str]:
    data = bytearray()
    while (block := (yield Input(4096))) and len(data) <= _MAX_INPUT:
        data += block
    return data.decode("utf-8", "replace")


def _json_tool(process: Process, arguments: list[str]) -> Run:
    names = [argument for argument in arguments if not argument.startswith("-")]
    try:
        text = _read(process, names[0]) if names else (yield from _read_input())
        value = json.loads(text)
    except FileError as error:
        yield process.report(f"usage: python -m json.tool: error: can't open '{names[0]}': {error}")
        return 2
    except ValueError as error:
        yield process.report(str(error))
        return 1
    indent = None if "--compact" in arguments or "--no-indent" in arguments else 4
    yield write_text(json.dumps(value, indent=indent, sort_keys="--sort-keys" in arguments) + "\n")
    return 0
