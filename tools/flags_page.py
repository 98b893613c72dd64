"""Write docs/flags.md: every flag of every command, from the parsers and settings that read them.

make flags
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mockube.apiserver.config import settings as server_settings
from mockube.apiserver.config.settings import ENVIRONMENT as SERVER_PREFIX
from mockube.apiserver.config.upstream import IGNORED as SERVER_IGNORED
from mockube.cli.main import COMMANDS
from mockube.cli.output import Code
from mockube.cli.parsing import CommandParser
from mockube.component_base.flags import Flag, flag_names, flags_of
from mockube.component_base.packs import flags_of_packs, own_pack_names
from mockube.controller_manager.command_line import ENVIRONMENT as MANAGER_PREFIX
from mockube.controller_manager.config import settings as manager_settings
from mockube.controller_manager.config.upstream import IGNORED as MANAGER_IGNORED

PAGE = Path(__file__).parents[1] / "docs/flags.md"

OPENING = """# Flags

This page is generated from the code by `make flags`. Defaults are in parentheses. `mockube COMMAND --help` prints the flags of one
command; `mockube up --help` those that people use, `mockube up --help=all` all.

Every flag of `mockube` can also be set by an environment variable: `MOCKUBE_NODES=5` is `--nodes=5`. The
variables of the two processes have other prefixes, see below. A flag on the command line takes precedence."""

PASSED_ON = """This command also accepts every flag of the [API server](#python--m-mockubeapiserver) and of the [controller
manager](#python--m-mockubecontroller_manager), except those that connect the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    module: str
    title: str
    prefix: str
    model: str
    """Upstream's program of the same flags."""
    sections: Iterable[type[Any]]
    ignored: Iterable[str]


_FLAGS_OF_PACKS = flags_of_packs(manager_settings.SECTIONS.values(), own_pack_names())

PROCESSES = (
    Process(
        module="mockube.apiserver",
        title="API server",
        prefix=SERVER_PREFIX,
        model="kube-apiserver",
        sections=server_settings.SECTIONS.values(),
        ignored=SERVER_IGNORED,
    ),
    Process(
        module="mockube.controller_manager",
        title="Controller manager",
        prefix=MANAGER_PREFIX,
        model="kube-controller-manager",
        sections=(*manager_settings.SECTIONS.values(), *_FLAGS_OF_PACKS.values()),
        ignored=MANAGER_IGNORED,
    ),
)


def page() -> str:
    commands = (part for name in COMMANDS for part in _command(name))
    processes = (part for process in PROCESSES for part in _process(process))
    return "\n\n".join((OPENING, *commands, *_codes(), *processes)) + "\n"


def _command(name: str) -> Iterator[str]:
    parser = CommandParser(prog=f"mockube {name}")
    COMMANDS[name].add_flags(parser)
    yield from _parser(f"## `mockube {name}`", parser.description, parser)


def _parser(heading: str, summary: str | None, parser: argparse.ArgumentParser) -> Iterator[str]:
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001 - argparse shows them nowhere else
    own = [action for action in actions if not _is_passed_on(action)]
    yield heading
    yield summary or ""
    rows = [_row(action) for action in own if action.dest != "help" and not _is_choice_of_commands(action)]
    if isinstance(parser, CommandParser):
        rows += [(f"`{flag}`", _deprecated(use)) for flag, use in parser.deprecated_flags.items()]
    if rows:
        yield _table(rows)
    if len(own) < len(actions):
        yield PASSED_ON
    for action in filter(_is_choice_of_commands, own):
        helps = {choice.dest: choice.help for choice in action._get_subactions()}  # noqa: SLF001 - as above
        for name, below in (action.choices or {}).items():
            yield from _parser(f"#{heading.rstrip('`')} {name}`", f"{helps[name].capitalize()}.", below)


def _is_passed_on(action: argparse.Action) -> bool:
    """Flags of the two processes have their process in their place."""
    return "." in action.dest


def _is_choice_of_commands(action: argparse.Action) -> bool:
    return isinstance(action.choices, dict)


def _row(action: argparse.Action) -> tuple[str, str]:
    value = "" if action.nargs == 0 else _value(action)
    suffix = f"[={value}]" if action.nargs == "?" else f"={value}" if value else ""
    names = [f"{name}{suffix if name.startswith('--') else ''}" for name in action.option_strings]
    return ", ".join(f"`{name}`" for name in names or [value]), (action.help or "").replace("%%", "%")


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(action.choices) if action.choices else action.dest.upper()


def _codes() -> Iterator[str]:
    yield "## Exit codes"
    yield _table(
        [
            *((f"{code.value}", code.name.lower().replace("_", " ")) for code in Code),
            (
                "128 and more",
                "a signal ended the command: its number plus 128; `mockube run` returns the exit code of its command",
            ),
        ],
        head="code",
    )


def _process(process: Process) -> Iterator[str]:
    yield f"## `python -m {process.module}`"
    yield (
        f"Flags that {process.model} also has are the same as there. As an environment variable, `--v` is"
        f" `{process.prefix}_V`."
    )
    for record in process.sections:
        yield f"### {process.title}: {record.__doc__}"
        for pack in (name for name, flags in _FLAGS_OF_PACKS.items() if flags is record):
            yield f"The controller manager has these flags with `--packs={pack}`."
        yield _table([_flag_row(name, flag) for name, flag in flags_of(record).items()])
    yield f"These flags are accepted for compatibility with {process.model}, with a warning, and have no effect:"
    yield ", ".join(f"`--{name}`" for name in sorted(process.ignored)) + "."


def _flag_row(name: str, flag: Flag) -> tuple[str, str]:
    again = "; may be repeated" if flag.repeats else ""
    meaning = _deprecated(flag.deprecated) if flag.deprecated else f"{flag.help}{again}"
    return ", ".join(f"`{text}`" for text in flag_names(name, flag)), meaning


def _deprecated(replacement: str) -> str:
    return f"**deprecated**: {replacement}"


def _table(rows: Iterable[tuple[str, str]], head: str = "flag") -> str:
    lines = [f"| {head} | meaning |", "|---|---|"]
    return "\n".join([*lines, *(f"| {_cell(flag)} | {_cell(description)} |" for flag, description in rows)])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
