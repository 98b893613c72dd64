"""`sed`: its options and files."""

from collections import deque
from collections.abc import Generator, Sequence
from copy import copy

from mockube.apimachinery.regexp.errors import RegexpError
from mockube.container_runtime.simulated.shell.devices import is_special
from mockube.container_runtime.simulated.shell.process import Effect, Process, Run, Steps, decoded, write_text
from mockube.container_runtime.simulated.shell.regular_expressions import BadRegularExpression
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .inputs import read_files, read_operand
from .sed_editor import SedEditor, SedOptions
from .sed_script import SedCommand, SedError, parse_script


def sed(process: Process) -> Run:
    try:
        options = yield from _parse_options(process)
        commands = parse_script("\n".join(options.scripts), is_extended=options.is_extended)
        labels = {command.text: index for index, command in enumerate(commands) if command.name == ":"}
        for command in commands:
            if command.name in ("b", "t", "T") and command.text and command.text not in labels:
                raise SedError(f"can't find label for jump to '{command.text}'")  # noqa: TRY301 - one place reports all
        return (yield from _edit_all(process, options, commands, labels))
    except (SedError, BadRegularExpression, RegexpError) as error:
        yield process.error(str(error))
        return 1


def _parse_options(process: Process) -> Generator[Effect, bytes | None, SedOptions]:
    options = SedOptions()
    remaining = deque(process.arguments)
    while remaining:
        argument = remaining.popleft()
        if argument == "--":
            options.names += remaining
            break
        if argument in ("--expression", "--file"):
            argument = argument[1:3]
        if not argument.startswith("-") or argument == "-":
            options.names.append(argument)
        elif argument.startswith("--"):
            _long_option(options, argument)
        else:
            yield from _short_options(process, options, argument[1:], remaining)
    if not options.scripts:
        if not options.names:
            raise SedError("no script specified")
        options.scripts.append(options.names.pop(0))
    return options


def _long_option(options: SedOptions, argument: str) -> None:
    name, _, value = argument[2:].partition("=")
    match name:
        case "expression":
            options.scripts.append(value)
        case "quiet" | "silent":
            options.is_quiet = True
        case "regexp-extended":
            options.is_extended = True
        case "in-place":
            options.edits, options.suffix = True, value
        case _:
            raise SedError(f"unrecognized option: {argument.lstrip('-')}")


def _short_options(process: Process, options: SedOptions, letters: str, remaining: deque[str]) -> Steps:
    for index, letter in enumerate(letters):
        rest = letters[index + 1 :]
        if letter in "ef":
            if not rest and not remaining:
                raise SedError(f"option requires an argument: {letter}")
            value = rest or remaining.popleft()
            if letter == "f":
                try:
                    value = (yield from read_operand(process, value)).decode("utf-8", "replace")
                except FileError as error:
                    raise SedError(f"can't open '{value}': {error}") from error
            options.scripts.append(value)
            return
        if letter == "i":
            options.edits, options.suffix = True, rest
            return
        if letter not in "nErsz":
            raise SedError(f"unrecognized option: {letter}")
        if letter == "z":
            raise SedError("-z is not simulated")
        options.is_quiet = options.is_quiet or letter == "n"
        options.is_extended = options.is_extended or letter in "Er"
        options.is_separate = options.is_separate or letter == "s"


def _edit_all(
    process: Process, options: SedOptions, commands: Sequence[SedCommand], labels: dict[str, int]
) -> Run:
    if not options.edits and options.is_separate and len(options.names) > 1:
        code = 0
        for name in options.names:
            separate = copy(options)
            separate.names = [name]
            code = (yield from _edit_all(process, separate, commands, labels)) or code
        return code
    if not options.edits:
        inputs = yield from read_files(process, options.names)
        code = inputs.code
        editor = SedEditor(process, options, commands, labels, (yield from decoded(inputs.data)))
        ended_code = yield from editor.run()
        yield write_text(editor.take_output())
        return ended_code or code
    code = 0
    files = process.host.files
    for name in options.names:
        if _is_missing(process, name):
            yield process.error(f"{name}: No such file or directory")
            code = 1
            continue
        path = process.path(name)
        before = files.read(path)
        text = yield from decoded(before)
        editor = SedEditor(process, options, commands, labels, text, keeps_output=True)
        code = (yield from editor.run()) or code
        modified = process.host.now_running(is_shown=True).timestamp()
        try:
            if options.suffix:
                files.write(path + options.suffix, before, modified=modified)
            files.write(path, editor.take_output().encode("utf-8", "surrogateescape"), modified=modified)
        except FileError as error:
            yield process.error(f"can't create temp file '{name}XXXXXX': {error}")
            code = 4
    return code


def _is_missing(process: Process, name: str) -> bool:
    if is_special(process.path(name)):
        return False
    try:
        return name != "-" and process.host.files.entry(process.path(name)).is_directory
    except FileError:
        return True
