"""The start of a command in a container: a program by its name, or a script in a shell."""

from collections.abc import Mapping, Sequence

from mockube.controller_manager.kubelet.shell import parser
from mockube.controller_manager.kubelet.shell.filesystem import FileError
from mockube.controller_manager.kubelet.shell.interpreter import NOT_FOUND, Shell
from mockube.controller_manager.kubelet.shell.process import (
    CommandStart,
    Host,
    Process,
    Run,
    UnknownProgram,
    read_input,
    write_text,
)
from mockube.controller_manager.kubelet.shell.syntax import ShellSyntaxError


def run_command(host: Host, argv: Sequence[str], environment: Mapping[str, str], directory: str = "/") -> Run:
    """Run a program of a container; raise `UnknownProgram` if it is not simulated."""
    name = argv[0].rpartition("/")[2]
    yield CommandStart()
    process = Process(host=host, argv=[name, *argv[1:]], environment=environment, directory=directory)
    program = host.programs.get(name)
    if program is None:
        raise UnknownProgram(argv[0])
    return (yield from program(process))


def run_shell(process: Process) -> Run:
    """Run `sh -c SCRIPT [NAME [ARGUMENT...]]`, `sh FILE`, or `sh` with a script as its input."""
    options = [argument for argument in process.arguments if argument.startswith("-")]
    rest = list(process.arguments[len(options) :])
    exits_on_error = any("e" in option.lstrip("-") for option in options if not option.startswith("--"))
    if any(option.endswith("c") for option in options):
        if not rest:
            yield process.error("-c requires an argument")
            return 2
        text, *arguments = rest
        shell = Shell(process, arguments or [process.name])
        shell.exits_on_error = exits_on_error
        return (yield from shell.run_text(text))
    if process.host.is_strict:
        raise UnknownProgram(process.name)
    if rest:
        try:
            text = process.host.files.read(process.path(rest[0])).decode("utf-8", "replace")
        except FileError as error:
            yield process.error(f"{rest[0]}: {error}")
            return NOT_FOUND
        return (yield from Shell(process, rest).run_text(text))
    return (yield from _run_input(Shell(process, [process.name])))


def _run_input(shell: Shell) -> Run:
    """Run each command of the input as soon as it is complete."""
    text, code = "", 0
    host = shell.process.host
    while True:
        if host.has_terminal:
            yield write_text(f"{shell.process.directory} # " if not text else "> ")
        data = yield from read_input(4096)
        text += data.decode("utf-8", "replace")
        lines, newline, rest = text.rpartition("\n")
        if data and not newline:
            continue
        script, text = (lines, rest) if data else (text, "")
        try:
            parser.parse(script)
        except ShellSyntaxError:
            if data and len(script) < parser.MAX_SCRIPT:
                text = f"{script}\n{rest}"
                continue
        code = yield from shell.run_text(script)
        if not data or shell.has_ended:
            return code
