"""The parser of every command: flags, environment variables, help, and the errors of invalid command lines.

Each flag can also be set by a variable, `--data-dir` by `MOCKUBE_DATA_DIR`; the flag takes precedence. The help of a command
with many flags has pages: `--help` prints the flags that people use, in groups, and `--help=PAGE` others.
"""

import argparse
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NoReturn, TypeAlias

from mockube.component_base.fork_orders import NAME_PATTERN
from mockube.component_base.suggestions import nearest

from .output import Code

PREFIX: Final = "MOCKUBE_"
TRUE_VALUES, FALSE_VALUES = frozenset({"1", "true", "yes"}), frozenset({"0", "false", "no"})

_DASHES: Final = "\N{EN DASH}\N{EM DASH}"
"""What word processors and web pages make of two hyphens."""

ALL: Final = "all"
"""The page of the help that has every flag."""
_MAIN: Final = ""
"""The page that `--help` prints."""

FlagGroup: TypeAlias = argparse._ArgumentGroup  # noqa: SLF001 - argparse has no public name for what it returns


class _Help(argparse.HelpFormatter):
    """Prints `-n, --name NAME` on one line, where argparse repeats the value's name."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=31)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        value = "" if action.nargs == 0 else self._format_args(action, action.dest.upper())
        value = value.replace("[", "[=", 1) if value.startswith("[") else f" {value}".rstrip()
        return ", ".join(action.option_strings) + value


class _PrintPage(argparse.Action):
    """The action of `--help[=PAGE]`."""

    def __call__(
        self, parser: argparse.ArgumentParser, _options: object, page: Any, _flag: object = None
    ) -> None:
        assert isinstance(parser, CommandParser)
        print(parser.page(page) if page else parser.format_help(), end="")
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """A parser with errors of one line and without abbreviated flags."""

    arguments: Sequence[str] | None = None
    """The arguments to be read, on which the flags of a command may depend; None if they are not known."""
    passes_flags: bool = False
    """Whether an unknown flag begins the command that is the rest of the arguments, as those of kubectl."""
    begins_command: bool = False
    """Whether the first argument that is no flag begins that command."""
    hint: str = ""
    """What else to see after an unknown flag or argument."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, add_help=False, formatter_class=_Help, **options)
        self._negative_number_matcher = re.compile(
            r"-[0-9]"
        )  # a span such as -5m is a value, and no flag begins so
        self._pages: dict[str, Sequence[str]] = {}
        """The pages of each group of flags that is not on the main page, by its title."""
        self._page_epilogs: Mapping[str, Callable[[], str]] = {}
        self.spellings: Mapping[str, str] = {}
        """Flags by other names that people type. No variable has these names: a Service sets `MOCKUBE_PORT` in its pods."""
        self.deprecated_flags: dict[str, str] = {}
        """What to use instead of each deprecated flag, by its name and value."""
        self._help = self.add_argument(
            "-h",
            "--help",
            action=_PrintPage,
            nargs=0,
            default=argparse.SUPPRESS,
            help="print this help and exit",
        )

    def add_deprecated(
        self, name: str, read: Callable[[str], Any], *, metavar: str, replacement: str, **more: Any
    ) -> None:
        """Add a deprecated flag, which the help does not list. `replacement` is what to use instead."""
        self.deprecated_flags[f"{name}={metavar}"] = replacement
        self.add_argument(name, type=read, metavar=metavar, help=argparse.SUPPRESS, **more)

    def add_pages(
        self, help_text: str, *pages: str, epilogs: Mapping[str, Callable[[], str]] | None = None
    ) -> None:
        """Give the help more pages than the main one; the groups that exist are before the flag of the help.

        `epilogs` return what a page ends with, by its name.
        """
        self._page_epilogs = epilogs or {}
        self._help.nargs, self._help.choices = "?", [ALL, *pages]
        self._help.metavar, self._help.help = "PAGE", help_text
        self._optionals.title = "Help"
        self._action_groups.append(self._action_groups.pop(self._action_groups.index(self._optionals)))

    def knows_arguments(self, environment: Mapping[str, str], except_flags: Collection[str]) -> bool:
        """Return whether the flags that were added suffice for the arguments and the environment, so that a command can leave out others.

        They do not if one of some flags is set, or if all flags may be printed.
        """
        if self.arguments is None or any(name.startswith(PREFIX) for name in environment):
            return False
        words = (word.partition("=")[0] for word in _before_separator(self.arguments) if word.startswith("-"))
        others = {*except_flags, *self._help.option_strings}
        return all(word in self._option_string_actions and word not in others for word in words)

    def group(self, title: str, *pages: str) -> FlagGroup:
        """Return the group of flags with this title, which is on the given pages of the help, or else on the main one."""
        if pages:
            self._pages[title] = pages
        return next(
            (group for group in self._action_groups if group.title == title), None
        ) or self.add_argument_group(title)

    def format_help(self) -> str:
        return self.page(_MAIN)

    def page(self, name: str) -> str:
        """Return a page of the help. A flag that is in several groups is printed once."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        printed: set[int] = set()
        for group in self._action_groups:
            if name == ALL or name in self._pages.get(group.title or "", [_MAIN]):
                actions = [action for action in group._group_actions if id(action) not in printed]  # noqa: SLF001 - as argparse does
                printed.update(map(id, actions))
                formatter.start_section(group.title)
                formatter.add_arguments(actions)
                formatter.end_section()
        formatter.add_text(self.epilog)
        epilogs = [epilog() for page, epilog in self._page_epilogs.items() if name in {ALL, page}]
        return "\n".join((formatter.format_help(), *epilogs))

    def read(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        namespace: argparse.Namespace | None = None,
    ) -> argparse.Namespace:
        """Parse the arguments; `set_flags` of the result has the flags that they or the environment set, by field."""
        if any(action.nargs == argparse.REMAINDER for action in self._actions):
            arguments = self._with_separator(arguments)
        arguments = self._with_subcommand_first(arguments)
        arguments = [*self._with_flag_names(self._without_bool_values(arguments))]
        names = {argument.partition("=")[0] for argument in _before_separator(arguments)}
        self._check_name_flag(names)
        variables = {name: text for name, text in environment.items() if name.startswith(PREFIX) and text}
        if variables:
            self.read_environment(variables, flag_names=names)
        before = {} if namespace is None else dict(vars(namespace))
        options, rest = self.parse_known_args(arguments, namespace)
        for dest, value in before.items():  # argparse replaces them by the defaults of a subcommand
            if f"--{dest}" not in names:
                setattr(options, dest, value)
        if rest:
            self.error(
                _unknown_problem(rest[0], [*self.flags()], names_cluster=not self._has_arguments()), self.hint
            )
        options.set_flags = {
            action.dest
            for action in self._actions
            if not names.isdisjoint(action.option_strings)
            or (variables and any(map(variables.get, variable_names(action))))
        }
        return options

    def _has_arguments(self) -> bool:
        """Return whether the command has arguments of its own, so that one more is hardly the name of the cluster."""
        return any(
            not action.option_strings and not isinstance(action.choices, Mapping) for action in self._actions
        ) or any(parser._has_arguments() for parser in self._command_parsers())  # noqa: SLF001 - of the same class

    def _check_name_flag(self, flags: Collection[str]) -> None:
        """Refuse -n before its value is read as another argument."""
        if self._action_of("-n") is None:
            for flag in flags:
                if place := place_of_name(flag, [*self.flags()]):
                    self.error(f"unknown flag -n{place}", self.hint)

    def _without_bool_values(self, arguments: Sequence[str]) -> Iterator[str]:
        """Replace `--keep=true`, which Go's flags accept, by `--keep`, and drop `--keep=false`; refuse `-keep`."""
        own_arguments = [*_before_separator(arguments)]
        for argument in own_arguments:
            name, equals, value = argument.partition("=")
            action = self._action_of(name)
            if equals and action is not None and action.nargs == 0:
                if action.dest == "help" or self._read_bool(name, value):
                    yield name
                continue
            if re.match("-[a-z]{2}", name) and self._action_of(f"-{name}") is not None:
                self.error(f"unknown flag {name}: did you mean -{name}?")
            yield argument
        yield from arguments[len(own_arguments) :]

    def _with_flag_names(self, arguments: Iterable[str]) -> Iterator[str]:
        """Replace other spellings of flags, and underscores by dashes, as Kubernetes' programs accept both."""
        arguments = [*arguments]
        own_arguments = [*_before_separator(arguments)]
        for argument in own_arguments:
            name, equals, value = argument.partition("=")
            dashed = name.replace("_", "-") if name.startswith("--") else name
            yield self.spellings.get(dashed, dashed) + equals + value
        yield from arguments[len(own_arguments) :]

    def _action_of(self, flag: str) -> argparse.Action | None:
        """Return the action of a flag of this command or of a subcommand."""
        action = self._option_string_actions.get(flag.replace("_", "-"))
        for parser in self._command_parsers():
            action = action or parser._action_of(flag)  # noqa: SLF001 - of the same class
        return action

    def _read_bool(self, name: str, text: str) -> bool:
        try:
            return _parse_bool(text)
        except ValueError as error:
            self.error(f"{name}: {error}")

    def _with_separator(self, arguments: Sequence[str]) -> Sequence[str]:
        """Put `--` before the command that the arguments end with, whose flags are not those of this parser.

        Flags of this parser may stand behind its own arguments: they are put before these.
        """
        flags, values = list[str](), list[str]()
        others = iter(enumerate(arguments, 1))
        for end, argument in others:
            name, equals, _ = argument.partition("=")
            action = self._option_string_actions.get(name.replace("_", "-"))
            if argument == "--":
                return [*flags, *(["--"] if values else []), *values, *arguments[end - 1 :]]
            if action is self._help and self.passes_flags:
                action = None
            if action is None and (self.passes_flags or self._is_value(argument)):
                if len(values) == self._value_count():
                    return [*flags, "--", *values, *arguments[end - 1 :]]
                values.append(argument)
                continue
            flags.append(argument)
            if action is not None and not equals and _is_value(action, arguments[end : end + 1]):
                flags.append(next(others)[1])
        return [*flags, "--", *values] if values else arguments

    def _with_subcommand_first(self, arguments: Sequence[str]) -> Sequence[str]:
        """Put flags of a subcommand that stand before it behind it, as kubectl accepts them."""
        own, others, rest = list[str](), list[str](), [*arguments]
        while rest and rest[0].startswith("-") and rest[0] != "--":
            name, equals, _ = rest[0].partition("=")
            flags = own if name in self._option_string_actions else others
            flags.append(rest.pop(0))
            action = self._action_of(name)
            if action is not None and not equals and _is_value(action, rest[:1]):
                flags.append(rest.pop(0))
        is_subcommand = bool(rest) and rest[0] in self._subcommands_by_name()
        return [*own, rest[0], *others, *rest[1:]] if is_subcommand else arguments

    def _subcommands_by_name(self) -> Mapping[str, "CommandParser"]:
        return next((action.choices for action in self._actions if isinstance(action.choices, Mapping)), {})

    def _is_value(self, argument: str) -> bool:
        return not argument.startswith("-") or bool(self._negative_number_matcher.match(argument))

    def _value_count(self) -> int:
        """Return how many arguments precede the command that the arguments end with."""
        if self.begins_command:
            return 0
        return sum(
            not action.option_strings and action.nargs != argparse.REMAINDER for action in self._actions
        )

    def flags(self) -> Iterator[str]:
        """Yield the flags of this command and its subcommands, except hidden ones."""
        for action in self._actions:
            if action.help != argparse.SUPPRESS:
                yield from action.option_strings
        for subparser in self._command_parsers():
            yield from subparser.flags()

    def error(self, message: str, hint: str = "") -> NoReturn:
        message = message.removeprefix("argument ")
        self.exit(Code.USAGE, f"mockube: {message} (see `{self.prog} --help`{hint})\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not a choice, with the message that an environment variable gets."""
        if action.choices is not None and value not in action.choices:
            problem = _choice_problem(value, action.choices)
            if not action.option_strings:
                self.error(problem, self.hint)
            raise argparse.ArgumentError(action, problem)

    def _command_parsers(self) -> Iterator["CommandParser"]:
        for action in self._actions:
            if isinstance(action.choices, Mapping):
                yield from (parser for parser in action.choices.values() if isinstance(parser, CommandParser))

    def read_environment(self, environment: Mapping[str, str], *, flag_names: set[str]) -> None:
        """Set the defaults of flags from the environment, if they are not on the command line."""
        for action in self._actions:
            if action is not self._help and flag_names.isdisjoint(action.option_strings):
                self._read_variable(action, environment)
        for subparser in self._command_parsers():
            subparser.read_environment(environment, flag_names=flag_names)

    def _read_variable(self, action: argparse.Action, environment: Mapping[str, str]) -> None:
        for name in variable_names(action):
            if text := environment.get(name):
                try:
                    action.default, action.required = _parse_value(action, text), False
                except (argparse.ArgumentTypeError, ValueError) as error:
                    self.error(f"{name}: {error}")
                return


def variable_names(action: argparse.Action) -> Iterator[str]:
    """Yield the names of the environment variables that set a flag: one for each long name."""
    for flag in action.option_strings:
        if flag.startswith("--"):
            yield PREFIX + flag.lstrip("-").replace("-", "_").upper()


def suggestion(word: str, known_names: Iterable[str]) -> str:
    """Return a suggestion: the names that end with the word, or else the most similar name; "" if there is none."""
    names = [*dict.fromkeys(known_names)]
    ending = f"-{word.lstrip('-')}"
    likely = " or ".join(name for name in names if name.endswith(ending)) or nearest(word, names)
    return f": did you mean {likely}?" if likely else ""


def place_of_name(flag: str, known_names: Collection[str]) -> str:
    """Return what to type instead of -n, which is the namespace where a command has one; "" for another flag."""
    chooses_cluster = flag.startswith("-n") and "--name" in known_names
    return ": a cluster is chosen with --name" if chooses_cluster else ""


def _parse_value(action: argparse.Action, text: str) -> Any:
    if action.nargs == 0:
        return _parse_bool(text)
    value = action.type(text) if callable(action.type) else text
    if action.choices is not None and value not in action.choices:
        raise ValueError(_choice_problem(text, action.choices))
    return [value] if isinstance(action.default, list) else value


def _is_value(action: argparse.Action, next_arguments: Sequence[str]) -> bool:
    """Return whether the argument after a flag is its value, and not the next argument."""
    if not next_arguments or action.nargs == 0 or next_arguments[0].startswith("-"):
        return False
    if action.nargs is None:
        return True
    try:
        _parse_value(action, next_arguments[0])
    except (argparse.ArgumentTypeError, ValueError):
        return False
    return True


def _choice_problem(text: str, choices: Iterable[str]) -> str:
    return f'"{text}" is not one of {", ".join(choices)}{suggestion(text, choices)}'


def _parse_bool(text: str) -> bool:
    if text.lower() not in TRUE_VALUES | FALSE_VALUES:
        raise ValueError(f'"{text}" is neither true nor false')
    return text.lower() in TRUE_VALUES


def _before_separator(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments before `--`; those after it belong to the command that `mockube run` runs."""
    return takewhile(lambda argument: argument != "--", arguments)


def _unknown_problem(word: str, known_names: Sequence[str], *, names_cluster: bool) -> str:
    name = word.partition("=")[0]
    if name[:1] in _DASHES:
        return f'unexpected argument "{word}": did you mean --{word.lstrip(_DASHES)}?'
    if name.startswith("-"):
        if place := place_of_name(name, known_names):
            return f"unknown flag -n{place}"
        if name in known_names:
            return f"{name} is a flag of another subcommand, or stands behind --, where there are no flags"
        return f"unknown flag {name}{suggestion(name, known_names)}"
    names_cluster = names_cluster and "--name" in known_names and re.fullmatch(NAME_PATTERN, word) is not None
    return f'unexpected argument "{word}"{f": did you mean --name={word}?" if names_cluster else ""}'
