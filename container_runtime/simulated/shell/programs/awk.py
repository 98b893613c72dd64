"""`awk`: its options, and the execution of its programs."""

from collections.abc import Mapping
from typing import Final

from mockube.apimachinery.regexp.errors import RegexpError
from mockube.container_runtime.simulated.shell.invocation import run_program
from mockube.container_runtime.simulated.shell.invoking import CommandNotFound
from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.posix_matches import SCANNED_PER_COMMAND
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Steps,
    count_work,
    decoded,
    write_text,
)
from mockube.container_runtime.simulated.shell.regular_expressions import BadRegularExpression
from mockube.container_runtime.simulated.shell.streams import TextStream
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .awk_lexer import AwkError, AwkNode, unescape
from .awk_machine import AwkExit, AwkMachine, NextFile, NextRecord
from .awk_parser import Rule, parse_program
from .awk_values import InputText, is_true
from .inputs import read_files

_RECORDS_PER_COMMAND: Final = 20


def awk(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "F:v:f:",
        long={"field-separator": "F", "assign": "v", "file": "f"},
        stops=True,
        code=2,
    )
    arguments = list(options.arguments)
    try:
        sources = [_read_program(process, name) for name in options.all("f")]
        if not sources:
            if not arguments:
                raise ProgramUsageError("usage: awk [OPTIONS] [AWK_PROGRAM] [FILE]...")
            sources = [arguments.pop(0)]
        machine = AwkMachine(process, parse_program("\n".join(sources)), ["awk", *arguments])
        if "F" in options:
            separator = unescape(options.get("F"))
            machine.set_variable("FS", "\t" if separator == "t" else separator)
        for assignment in options.all("v"):
            name, _, value = assignment.partition("=")
            machine.set_variable(name, InputText(unescape(value)))
        return (yield from _run(process, machine))
    except (AwkError, BadRegularExpression, RegexpError, RecursionError) as error:
        raise ProgramUsageError(str(error) or "operands are nested too deeply", 2) from error


def _read_program(process: Process, name: str) -> str:
    try:
        return process.host.files.read(process.path(name)).decode("utf-8", "replace")
    except FileError as error:
        raise ProgramUsageError(f"{name}: {error}", 2) from error


def _run(process: Process, machine: AwkMachine) -> Run:
    program = machine.program
    code = 0
    try:
        for action in program.begin:
            yield from _execute(process, machine, action)
            yield from _flush(process, machine)
        if program.rules or program.end:
            code = yield from _run_records(process, machine)
    except AwkExit as stop:
        code = stop.code
        if stop.skips_end:
            yield from _finish(process, machine)
            return code
    try:
        for action in program.end:
            yield from _execute(process, machine, action)
            yield from _flush(process, machine)
    except AwkExit as stop:
        code = stop.code if stop.has_code else code
    yield from _finish(process, machine)
    return code


def _run_records(process: Process, machine: AwkMachine) -> Run:
    code = 0
    uses_input = True
    for argument in machine.operands():
        name, equals, value = argument.partition("=")
        if equals and name.isidentifier():
            machine.set_variable(name, InputText(unescape(value)))
            continue
        uses_input = False
        code = (yield from _run_file(process, machine, argument)) or code
    if uses_input:
        code = yield from _run_file(process, machine, "-")
    return code


def _run_file(process: Process, machine: AwkMachine, name: str) -> Run:
    inputs = yield from read_files(process, [name], prefix="open", code=2)
    if inputs.code:
        return 2
    machine.open_file("" if name == "-" else name, (yield from decoded(inputs.data)))
    active: set[int] = set()
    count = 0
    while machine.read_record():
        count += 1
        if count % _RECORDS_PER_COMMAND == 0:
            yield CommandStart()
        yield from count_work(len(machine.field(0)) ** 2, SCANNED_PER_COMMAND)
        try:
            for index, rule in enumerate(machine.program.rules):
                if _applies(machine, index, rule, active):
                    yield from _execute(
                        process, machine, rule.action or AwkNode("print", "", (AwkNode("none"),))
                    )
        except NextRecord:
            pass
        except NextFile:
            break
        yield from _flush(process, machine)
    return 0


def _applies(machine: AwkMachine, index: int, rule: Rule, active: set[int]) -> bool:
    """Return whether a rule's pattern matches the record; `active` are the rules whose range has begun."""
    if not rule.patterns:
        return True
    if len(rule.patterns) == 1:
        return is_true(machine.evaluate(rule.patterns[0]))
    if index not in active:
        if not is_true(machine.evaluate(rule.patterns[0])):
            return False
        active.add(index)
    if is_true(machine.evaluate(rule.patterns[1])):
        active.discard(index)
    return True


def _execute(process: Process, machine: AwkMachine, action: AwkNode) -> Steps:
    """Execute an action, and write in its pauses: it may never end."""
    for _ in machine.execute_action(action):
        yield from _flush(process, machine)


def _flush(process: Process, machine: AwkMachine) -> Steps:
    """Write the output, and execute the commands that are closed."""
    yield from count_work(machine.take_commands(), 1)
    output = machine.take_output()
    if output:
        yield write_text(output)
    if machine.errors:
        yield Output(2, "".join(machine.errors).encode("utf-8", "surrogateescape"))
        machine.errors.clear()
    for command, text in machine.take_closed():
        yield from _run_command(process, command, text)


def _finish(process: Process, machine: AwkMachine) -> Steps:
    machine.close_all()
    yield from _flush(process, machine)


def _run_command(process: Process, command: str, text: str) -> Steps:
    stream = TextStream(process.host, text.encode("utf-8", "surrogateescape"))
    child = process.child(["sh", "-c", command], descriptors={**process.descriptors, 0: stream})
    try:
        yield from run_program(child)
    except CommandNotFound:  # awk says nothing of a shell that cannot be executed
        return


PROGRAMS: Final[Mapping[str, Program]] = dict.fromkeys(("awk", "gawk", "mawk"), awk)
