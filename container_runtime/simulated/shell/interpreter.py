"""The shell's interpreter: executes lists, pipelines, groups, subshells and background jobs."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import ClassVar, Final

from mockube.container_runtime.behavior import NOT_FOUND

from . import limits, parser, simple_commands
from .command_traits import is_checked, part_name, reader_of_file
from .compound_commands import CompoundCommands
from .conditional import evaluate_condition
from .conditions import BadCondition
from .messages import message_of
from .process import (
    BrokenPipe,
    CommandStart,
    DescriptorStream,
    Effect,
    Run,
    Steps,
    WaitUntil,
    decoded,
)
from .signals import exit_trap, run_pending_traps
from .state import (
    BadIndex,
    DiscardError,
    ExpansionError,
    ExpansionTooLong,
    FunctionReturn,
    LoopControl,
    OutputPipe,
    ShellExit,
)
from .streams import SIGPIPE_CODE, CaptureStream, NullStream, open_pipe
from .syntax import (
    ArithmeticCommand,
    ArithmeticFor,
    Background,
    Case,
    Command,
    CommandGroup,
    CommandList,
    Conditional,
    For,
    FunctionDefinition,
    If,
    Loop,
    Pipeline,
    ShellSyntaxError,
    SimpleCommand,
)
from .variables import ReadOnlyVariable, ShellVariable
from .vfs.file_entry import FileError

_DRAIN_SECONDS: Final = 1.0


def _only_command(command: Command) -> Command:
    """Return the only command of a list; a list of several as it is."""
    if isinstance(command, CommandList) and len(command.items) == 1:
        return command.items[0][1]
    return command


class Interpreter(CompoundCommands):
    """One shell that executes commands."""

    def run(self, command: Command, *, tested: bool = False) -> Run:
        if "noexec" in self.options:
            return self.status
        yield from run_pending_traps(self)
        code = yield from self._runners[type(command)](self, command, tested=tested)
        self.status = code
        if code and not tested and is_checked(command):
            if "ERR" in self.traps:
                yield from self.run_error_trap()
            if "errexit" in self.options:
                raise ShellExit(code)
        return code

    def run_error_trap(self) -> Steps:
        """Execute the trap for failures, which does not apply to itself."""
        action, status, line = self.traps.pop("ERR"), self.status, self.line
        yield from self.run_text(action, line=line)
        self.traps.setdefault("ERR", action)
        self.status, self.line = status, line

    def run_text(self, text: str, *, tested: bool = False, line: int = 1) -> Run:
        script = parser.ShellScript(text, is_bash=self.is_bash, line=line)
        code = 0
        while (command := (yield from script.next_command())) is not None:
            code = yield from self.run(command, tested=tested)
        return code

    def capture(self, script: Command, *, keeps_end: bool = False) -> Generator[Effect, bytes | None, str]:
        script = reader_of_file(script) if self.is_bash else script
        output = CaptureStream(self.process)
        subshell = self.subshell({**self.descriptors, 1: output})
        if self.is_bash and "inherit_errexit" not in self.features:
            subshell.options.discard("errexit")
        tested = self.is_bash and self.is_tested
        self.captured_status = yield from subshell.run_to_end(script, tested=tested)
        processes = self.process.processes
        if processes.holds(output):  # its jobs in the background go on writing
            yield WaitUntil(lambda: not processes.holds(output))
        if not output.is_complete:
            raise ExpansionTooLong("the value is too long")
        if self.is_bash:
            self.status = self.captured_status
        data = output.data if keeps_end else output.data.translate(None, b"\0")
        text = yield from decoded(data)
        return text if keeps_end else text.rstrip("\n")

    def open_output_pipe(self, script: Command) -> str:
        processes = self.process.processes
        reader, writer = open_pipe(self.process.host, processes)
        descriptors: dict[int, DescriptorStream] = {**self.descriptors, 0: reader}
        shell = self.subshell(descriptors)
        shell.owns_process = True
        child = processes.start([part_name(script)], shell.run_to_end(script), descriptors)
        number = self.free_descriptor()
        self.descriptors[number] = writer
        running = [pipe for pipe in self.output_pipes if pipe.child.code is None]
        self.output_pipes = [*running, OutputPipe(self.pipes_opened, number, child)]
        self.pipes_opened += 1
        return f"/dev/fd/{number}"

    def _wait_for_output_pipes(self) -> Steps:
        """Let the processes of `>(script)` read what this shell has written, which a real one does not wait for."""
        children = [pipe.child for pipe in self.output_pipes]
        if children:
            self.descriptors.clear()
            yield WaitUntil(lambda: all(child.code is not None for child in children), _DRAIN_SECONDS)

    def invoke(self, argv: Sequence[str], values: Mapping[str, str], *, finds_functions: bool = True) -> Run:
        return (yield from simple_commands.invoke(self, argv, values, finds_functions=finds_functions))

    def report_error(self, error: Exception) -> Steps:
        yield from simple_commands.report_error(self, error)

    def run_program(self, argv: Sequence[str]) -> Run:
        return (yield from simple_commands.run_program(self, argv, {}))

    # --- subshells

    def subshell(self, descriptors: dict[int, DescriptorStream] | None = None) -> "Interpreter":
        """Return a copy of the shell."""
        process = self.process.with_arguments(self.process.argv)
        shell = Interpreter(process, [self.script_name, *self.arguments], is_bash=self.is_bash)
        shell.variables = self.variables.copy()
        shell.options, shell.features = set(self.options), set(self.features)
        shell.functions, shell.origin = dict(self.functions), self.origin.copy()
        inherited = "ERR" if "errtrace" in self.options else ""
        shell.traps = {name: action for name, action in self.traps.items() if not action or name == inherited}
        shell.status, shell.line, shell.calls = self.status, self.line, list(self.calls)
        shell.loops, shell.last_job, shell.started = self.loops, self.last_job, self.started
        shell.ignored_signals = self.ignored_signals
        shell.letters, shell.directories = self.letters, list(self.directories)
        shell.descriptors = dict(self.descriptors) if descriptors is None else descriptors
        shell.owns_process = False
        shell.depth = self.depth + 1
        if shell.depth > limits.MAX_SUBSHELLS:
            raise ExpansionError("commands are nested too deeply")
        return shell

    def run_to_end(self, command: Command | str, *, tested: bool = False) -> Run:
        """Execute a command as all that the shell does; return its exit code."""
        self.variables.keep = self.process.processes.keep
        with self.process.processes.hold(self.descriptors), self.process.processes.kept_until_end():
            try:
                code = yield from self._run_all(command, tested=tested)
                code = yield from exit_trap(self, code)
            except ShellExit as stop:
                code = stop.code
            except BrokenPipe:
                code = SIGPIPE_CODE
            yield from self._wait_for_output_pipes()
            return code

    def _run_all(self, command: Command | str, *, tested: bool) -> Run:
        try:
            if isinstance(command, str):
                return (yield from self._run_script(command))
            return (yield from self.run(command, tested=tested))
        except (ShellExit, FunctionReturn) as stop:
            return stop.code
        except LoopControl:
            return 0
        except (ShellSyntaxError, ReadOnlyVariable, BadCondition) as error:
            yield from self.report_error(error)
            return self.error_code(error)
        except RecursionError:
            yield from self.report("commands are nested too deeply")
            return 2

    def _run_script(self, text: str) -> Run:
        """Execute all of a script; bash continues behind a line with an invalid expression.

        A shell executes the one program of `-c PROGRAM` in its own process.
        """
        script = parser.ShellScript(text, is_bash=self.is_bash)
        code = 0
        is_line = "c" in self.letters and self.depth == 0 and "\n" not in text.strip()
        while (command := (yield from script.next_command())) is not None:
            if is_line:
                self.whole_command, is_line = _only_command(command), False
            try:
                code = yield from self.run(command)
            except (DiscardError, ReadOnlyVariable) as error:
                if not self.is_bash:
                    raise
                yield from self.report_error(error)
                code = self.status = 1
                if "errexit" in self.options or (isinstance(error, BadIndex) and "c" in self.letters):
                    raise ShellExit(1) from None
        return code

    def run_interactively(self, text: str, line: int) -> Steps:
        """Execute commands of the standard input, the first in a line; an error does not end a shell with a terminal."""
        try:
            yield from self.run_text(text, line=line)
        except (FunctionReturn, LoopControl):
            pass
        except (ShellSyntaxError, ReadOnlyVariable) as error:
            yield from self.report_error(error)
            self.status = self.error_code(error)
            if not self.process.host.has_terminal:
                raise ShellExit(self.status) from None

    def end(self, code: int) -> Run:
        """Execute what remains at the end of the shell; return its exit code."""
        return (yield from exit_trap(self, code))

    def error_code(self, error: Exception) -> int:
        """Return the exit code of a shell that an error ends."""
        is_expansion = isinstance(error, ExpansionError | ReadOnlyVariable)
        if not (self.is_bash and is_expansion):
            return 2
        is_script = "c" in self.letters and self.depth == 0 and "errexit" not in self.options
        return NOT_FOUND if is_script else 1

    # --- compound commands

    def _list(self, command: CommandList, *, tested: bool) -> Run:
        code = self.status if not command.items else 0
        items = command.items
        for index, (operator, part) in enumerate(items):
            if (operator == "&&" and code != 0) or (operator == "||" and code == 0):
                continue
            is_left = index + 1 < len(items) and items[index + 1][0] != ";"
            code = yield from self.run(part, tested=tested or is_left)
        return code

    def _pipeline(self, command: Pipeline, *, tested: bool) -> Run:
        commands, code = command.commands, 0
        inner_tested = tested or command.negated
        if len(commands) > 1:
            code = yield from self._pipe(commands, tested=inner_tested)
        elif commands:
            code = yield from self.run(commands[0], tested=inner_tested)
        return int(code == 0) if command.negated else code

    def _pipe(self, commands: Sequence[Command], *, tested: bool) -> Run:
        """Start the commands beside each other, and wait for all of them."""
        processes = self.process.processes
        children = []
        source = self.descriptors.get(0)
        for index, part in enumerate(commands):
            descriptors = dict(self.descriptors)
            if source is not None:
                descriptors[0] = source
            if index < len(commands) - 1:
                source, descriptors[1] = open_pipe(self.process.host, processes)
            shell = self.subshell(descriptors)
            shell.owns_process, shell.whole_command = True, part
            children.append(
                processes.start([part_name(part)], shell.run_to_end(part, tested=tested), descriptors)
            )
        yield WaitUntil(lambda: all(child.code is not None for child in children))
        codes = [child.code or 0 for child in children]
        if self.is_bash:
            status: dict[int | str, str] = {index: str(code) for index, code in enumerate(codes)}
            self.variables.put("PIPESTATUS", ShellVariable(elements=status))
        failures = [code for code in codes if code]
        return failures[-1] if "pipefail" in self.options and failures else codes[-1]

    def _background(self, command: Background, **_: bool) -> Run:
        yield CommandStart()
        descriptors = dict(self.descriptors)
        if "monitor" not in self.options:
            descriptors[0] = NullStream()
        shell = self.subshell(descriptors)
        shell.owns_process, shell.whole_command = True, command.command
        name = [part_name(command.command)]
        job = self.process.processes.start(name, shell.run_to_end(command.command), descriptors)
        self.jobs.append(job)
        self.last_job = job
        return 0

    def _group(self, command: CommandGroup, *, tested: bool) -> Run:
        self.line = command.line
        pipes = self.pipes_opened
        if not command.redirects:
            return (yield from self._group_body(command, self.descriptors, tested=tested))
        try:
            resolved = yield from simple_commands.resolve_redirects(self, command.redirects)
            descriptors = yield from simple_commands.apply_redirects(self, resolved)
        except FileError as error:
            yield from self.report(str(error))
            return self.failed_redirection_code
        except ExpansionError as error:  # in a here-document: only this command fails
            if self.is_bash:
                raise
            yield from self.report(str(error))
            return 2
        try:
            with self.with_descriptors(descriptors):
                body = self._group_body(command, descriptors, tested=tested)
                return (yield from simple_commands.report_errors(self, body))
        finally:
            self.close_output_pipes(pipes)

    def _group_body(
        self, command: CommandGroup, descriptors: dict[int, DescriptorStream], *, tested: bool
    ) -> Run:
        if not command.subshell:
            return (yield from self.run(command.body, tested=tested))
        yield CommandStart()
        shell = self.subshell(dict(descriptors))
        if command is self.whole_command:  # A shell that has nothing else to do starts no other one.
            shell.owns_process, shell.whole_command = self.owns_process, _only_command(command.body)
        return (yield from shell.run_to_end(command.body, tested=tested))

    def _define(self, command: FunctionDefinition, **_: bool) -> Run:
        yield CommandStart()
        self.functions[command.name] = command.body
        self.origin.definitions[command.name] = self.file_name() or (
            "main" if "s" in self.letters else "environment"
        )
        self.variables.changes += 1
        return 0

    def _conditional(self, command: Conditional, **_: bool) -> Run:
        self.line = command.line
        yield CommandStart()
        try:
            return int(not (yield from evaluate_condition(self, command.condition)))
        except BadCondition as error:
            yield from self.report(message_of(error, is_bash=self.is_bash))
            return 2

    def _arithmetic(self, command: ArithmeticCommand, **_: bool) -> Run:
        yield CommandStart()
        return int(not (yield from self.evaluate(command.expression, command.line)))

    def _simple(self, command: SimpleCommand, *, tested: bool) -> Run:
        return (yield from simple_commands.run(self, command, tested=tested))

    _runners: ClassVar[Mapping[type, Callable[..., Run]]] = {
        SimpleCommand: _simple,
        CommandList: _list,
        Pipeline: _pipeline,
        Background: _background,
        If: CompoundCommands.execute_if,
        Loop: CompoundCommands.execute_loop,
        For: CompoundCommands.execute_for,
        ArithmeticFor: CompoundCommands.execute_arithmetic_for,
        Case: CompoundCommands.execute_case,
        CommandGroup: _group,
        FunctionDefinition: _define,
        Conditional: _conditional,
        ArithmeticCommand: _arithmetic,
    }
