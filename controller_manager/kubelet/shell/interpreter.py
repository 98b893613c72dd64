"""The shell's interpreter: executes scripts, with variables, functions, pipes and redirections."""

from collections.abc import Generator, Mapping, Sequence
from typing import Final

from mockube.controller_manager.kubelet.shell import parser
from mockube.controller_manager.kubelet.shell.expansion import (
    MAX_VALUE,
    expand_text,
    expand_words,
    matches_pattern,
)
from mockube.controller_manager.kubelet.shell.filesystem import FileError
from mockube.controller_manager.kubelet.shell.process import (
    CommandStart,
    Effect,
    FunctionReturn,
    LoopControl,
    Output,
    Process,
    RepeatedIteration,
    Run,
    ShellExit,
    Sleep,
    UnknownProgram,
    count_work,
    read_line,
)
from mockube.controller_manager.kubelet.shell.redirection import Redirections, pipe
from mockube.controller_manager.kubelet.shell.syntax import (
    Case,
    Command,
    CommandGroup,
    CommandList,
    For,
    FunctionDefinition,
    If,
    Loop,
    Pipeline,
    Redirect,
    ShellSyntaxError,
    SimpleCommand,
)

ITERATION_SECONDS: Final = 0.001
"""The duration of a loop's iteration in which no command sleeps."""
NOT_FOUND: Final = 127
_SCRIPT_PER_COMMAND: Final = 512
"""The length of a script that is parsed in the time of a command."""
MAX_CALLS: Final = 50
"""The maximum depth of function calls."""
_SPECIAL: Final = frozenset(
    {"exit", "break", "continue", "return", "cd", "export", "unset", "set", "read", "shift", "eval"}
)


class Shell:
    """One shell: its variables, functions and arguments."""

    def __init__(self, process: Process, arguments: Sequence[str]) -> None:
        self.process = process
        self.exits_on_error = False
        self.has_ended = False
        self._arguments = list(arguments)
        self._functions: dict[str, Command] = {}
        self._exported = dict(process.environment)
        self._variables: dict[str, str] = {}
        self._status = 0
        self._calls = 0
        self._changes = 0
        """The number of changes of variables and other state."""

    def run_text(self, text: str) -> Run:
        try:
            script = parser.parse(text)
            self._status = yield from self._run(script)
        except ShellSyntaxError as error:
            if self.process.host.is_strict:
                raise
            yield self.process.error(str(error))
            return 2
        except ShellExit as stop:
            self.has_ended = True
            return stop.code
        except LoopControl:
            return 0
        return self._status

    # --- ShellState

    def parameter(self, name: str) -> str | None:
        if name.isdecimal():
            index = int(name)
            return self._arguments[index] if index < len(self._arguments) else None
        match name:
            case "?":
                return str(self._status)
            case "#":
                return str(len(self._arguments) - 1)
            case "$":
                return "1"
            case "!" | "-":
                return ""
            case "PWD":
                return self.process.directory
            case "RANDOM":
                self._changes += 1
                return str((self._changes * 1103515245 + 12345 >> 8) & 0x7FFF)
            case _:
                return self._variable(name)

    def _variable(self, name: str) -> str | None:
        value = self._variables.get(name)
        return self._exported.get(name) if value is None else value

    def arguments(self) -> Sequence[str]:
        return self._arguments[1:]

    def assign(self, name: str, value: str) -> None:
        if self.parameter(name) == value:
            return
        self._changes += 1
        variables = self._exported if name in self._exported else self._variables
        variables[name] = value

    def capture(self, script: Command) -> Generator[Effect, bytes | None, str]:
        """Return the output of a script without the newlines at its end."""
        chunks: list[bytes] = []
        size = 0
        execution = self._subshell().run(script)
        reply: bytes | None = None
        try:
            while True:
                effect = execution.send(reply) if reply else next(execution)
                reply = None
                if isinstance(effect, Output) and effect.descriptor == 1:
                    chunks.append(effect.data)
                    size += len(effect.data)
                    if size > MAX_VALUE:
                        raise ShellSyntaxError("the value is too long")
                else:
                    reply = yield effect
        except StopIteration as stop:
            self._status = stop.value
        return b"".join(chunks).decode("utf-8", "surrogateescape").rstrip("\n")

    def run(self, command: Command) -> Run:
        try:
            return (yield from self._run(command))
        except ShellExit as stop:
            return stop.code

    # --- commands

    def _run(self, command: Command) -> Run:
        code = 0
        match command:
            case SimpleCommand():
                code = yield from self._simple_command(command)
            case CommandList():
                code = yield from self._sequence(command)
            case Pipeline():
                code = yield from self._pipeline(command)
            case If():
                code = yield from self._if(command)
            case Loop():
                code = yield from self._loop(command)
            case For():
                code = yield from self._for(command)
            case Case():
                code = yield from self._case(command)
            case CommandGroup():
                code = yield from self._group(command)
            case FunctionDefinition(name=name, body=body):
                self._functions[name] = body
        self._status = code
        return code

    def _sequence(self, command: CommandList) -> Run:
        if not command.items:
            return self._status
        code = 0
        operators = [operator for operator, _ in command.items[1:]]
        for (operator, part), following in zip(command.items, [*operators, ";"], strict=True):
            if (operator == "&&" and code != 0) or (operator == "||" and code == 0):
                continue
            code = yield from self._run(part)
            if code and self.exits_on_error and following == ";" and not isinstance(part, If | Loop):
                raise ShellExit(code)
        return code

    def _pipeline(self, command: Pipeline) -> Run:
        first, *rest = command.commands
        execution: Run = self._subshell().run(first) if rest else self._run(first)
        for part in rest:
            execution = pipe(self._subshell().run(part), execution)
        code = yield from execution
        return int(code == 0) if command.negated else code

    def _if(self, command: If) -> Run:
        for condition, body in command.branches:
            if (yield from self._run_condition(condition)) == 0:
                return (yield from self._run(body))
        return 0 if command.otherwise is None else (yield from self._run(command.otherwise))

    def _run_condition(self, condition: Command) -> Run:
        """Run a condition, whose failure does not end the script."""
        before, self.exits_on_error = self.exits_on_error, False
        code = yield from self._run(condition)
        self.exits_on_error = before
        return code

    def _loop(self, command: Loop) -> Run:
        code = 0
        while True:
            changes_before, elapsed_before = self._changes, self.process.host.elapsed
            condition = yield from self._run_condition(command.condition)
            if (condition == 0) is not command.is_while:
                return code
            try:
                code = yield from self._run(command.body)
            except LoopControl as control:
                if control.levels > 1:
                    raise LoopControl(control.levels - 1, is_continue=control.is_continue) from None
                if not control.is_continue:
                    return 0
            if self.process.host.elapsed == elapsed_before:
                yield Sleep(ITERATION_SECONDS)
            duration = self.process.host.elapsed - elapsed_before
            if changes_before == self._changes and duration > 0:
                iterations = yield RepeatedIteration(duration)
                if iterations:
                    self.process.host.elapsed += duration * int(iterations)

    def _for(self, command: For) -> Run:
        if command.words is None:
            values = list(self.arguments())
        else:
            values = yield from expand_words(self, command.words)
        code = 0
        for value in values:
            yield CommandStart()  # the body may have no command that counts
            self.assign(command.name, value)
            try:
                code = yield from self._run(command.body)
            except LoopControl as control:
                if control.levels > 1:
                    raise LoopControl(control.levels - 1, is_continue=control.is_continue) from None
                if not control.is_continue:
                    return 0
        return code

    def _case(self, command: Case) -> Run:
        value = yield from expand_text(self, command.word)
        for patterns, body in command.branches:
            for pattern in patterns:
                if (yield from matches_pattern(self, value, pattern)):
                    return (yield from self._run(body))
        return 0

    def _group(self, command: CommandGroup) -> Run:
        execution = self._subshell().run(command.body) if command.subshell else self._run(command.body)
        if not command.redirects:
            return (yield from execution)
        return (yield from self._redirect(execution, command.redirects))

    def _redirect(self, execution: Run, redirects: Sequence[Redirect]) -> Run:
        resolved = []
        for redirect in redirects:
            target = yield from expand_text(self, redirect.target)
            resolved.append((redirect.descriptor, redirect.operator, target))
        try:
            redirections = Redirections(self.process, resolved)
        except FileError as error:
            execution.close()
            yield self.process.error(str(error))
            return 1
        self._changes += redirections.written_files
        return (yield from redirections.run(execution))

    def _simple_command(self, command: SimpleCommand) -> Run:
        yield CommandStart()
        argv = yield from expand_words(self, command.words)
        values = {}
        for name, word in command.assignments:
            values[name] = yield from expand_text(self, word)
        if not argv:
            for name, value in values.items():
                self.assign(name, value)
            return self._status if command.assignments and not values else 0
        execution = self._invoke(argv, values)
        if command.redirects:
            return (yield from self._redirect(execution, command.redirects))
        return (yield from execution)

    def _invoke(self, argv: Sequence[str], values: Mapping[str, str]) -> Run:
        name = argv[0]
        if name == "exec" and len(argv) > 1:
            code = yield from self._invoke(argv[1:], values)
            raise ShellExit(code)
        if name in self._functions:
            return (yield from self._call(name, argv))
        if name in _SPECIAL:
            return (yield from self._special_builtin(argv))
        program_name = name.rpartition("/")[2]
        process = Process(
            host=self.process.host,
            argv=[program_name, *argv[1:]],
            environment={**self._exported, **values},
            directory=self.process.directory,
        )
        program = process.host.programs.get(program_name)
        if program is None:
            if self.process.host.is_strict:
                raise UnknownProgram(name)
            yield self.process.error(f"{name}: not found")
            return NOT_FOUND
        return (yield from program(process))

    def _call(self, name: str, argv: Sequence[str]) -> Run:
        if self._calls >= MAX_CALLS:
            raise ShellSyntaxError(f"{name}: functions are nested too deeply")
        before, self._arguments = self._arguments, [self._arguments[0], *argv[1:]]
        self._calls += 1
        try:
            return (yield from self._run(self._functions[name]))
        except FunctionReturn as stop:
            return stop.code
        finally:
            self._calls -= 1
            self._arguments = before

    def _special_builtin(self, argv: Sequence[str]) -> Run:
        name, *arguments = argv
        number = arguments[0] if arguments and arguments[0].isascii() and arguments[0].isdecimal() else ""
        match name:
            case "exit" | "return":
                code = self._status if not arguments else (int(number) % 256 if 0 < len(number) < 10 else 2)
                raise (ShellExit if name == "exit" else FunctionReturn)(code)
            case "break" | "continue":
                raise LoopControl(int(number[:4] or 1), is_continue=name == "continue")
            case "eval":
                yield from count_work(sum(map(len, arguments)), _SCRIPT_PER_COMMAND)
                return (yield from self._run(parser.parse(" ".join(arguments))))
            case "read":
                return (yield from self._read(arguments))
            case "cd":
                return (yield from self._change_directory(arguments))
            case _:
                self._declare(name, arguments)
                return 0

    def _declare(self, name: str, arguments: Sequence[str]) -> None:
        self._changes += 1
        if name == "shift":
            del self._arguments[1:2]
        elif name == "set":
            options = "".join(argument[1:] for argument in arguments if argument[:1] == "-")
            self.exits_on_error = self.exits_on_error or "e" in options.partition("o")[0]
        for argument in arguments if name in ("export", "unset") else ():
            key, separator, value = argument.partition("=")
            if name == "unset":
                self._exported.pop(key, None)
                self._variables.pop(key, None)
            elif separator or key in self._variables:
                self._exported[key] = value if separator else self._variables.pop(key)

    def _change_directory(self, arguments: Sequence[str]) -> Run:
        target = self.process.path(arguments[0] if arguments else self.parameter("HOME") or "/")
        files = self.process.host.files
        if not files.is_partial and not (files.exists(target) and files.entry(target).is_directory):
            yield self.process.error(
                f"cd: can't cd to {arguments[0] if arguments else target}: No such file or directory"
            )
            return 2
        self.process.directory = target
        self._changes += 1
        return 0

    def _read(self, arguments: Sequence[str]) -> Run:
        line = yield from read_line(MAX_VALUE)
        names = [argument for argument in arguments if not argument.startswith("-")] or ["REPLY"]
        values = line.decode("utf-8", "surrogateescape").rstrip("\n").split(None, len(names) - 1)
        for index, name in enumerate(names):
            self.assign(name, values[index].strip() if index < len(values) else "")
        return 0 if line else 1

    def _subshell(self) -> "Shell":
        process = Process(
            host=self.process.host,
            argv=self.process.argv,
            environment=self._exported,
            directory=self.process.directory,
        )
        subshell = Shell(process, self._arguments)
        subshell._functions = dict(self._functions)
        subshell._variables = dict(self._variables)
        subshell._status, subshell._calls = self._status, self._calls
        subshell.exits_on_error = self.exits_on_error
        return subshell
