"""The one program of a script such as `sh -c 'exec nginx -g "daemon off;"'`, which the shell executes in its own process. Pure."""

from functools import lru_cache
from typing import Final

from . import parser
from .command_lookup import SHELL_WORDS
from .syntax import Assignment, Command, CommandList, ShellSyntaxError, SimpleCommand, Text, Word

_EXPANDED: Final = frozenset("*?[{~")
"""What makes a shell expand a text without quotes."""


@lru_cache(maxsize=1024)
def only_program(script: str, *, is_bash: bool) -> tuple[str, ...]:
    """Return the command line of the program that is all of a script; empty if it is more, or if its words are to be expanded."""
    command = _only_command(script, is_bash=is_bash)
    if command is None or command.assignments:
        return ()
    words = [_literal(word) for word in command.words]
    words = words[1:] if words[:1] == ["exec"] else words
    argv = tuple(word for word in words if word is not None)
    return argv if argv and len(argv) == len(words) and argv[0] not in SHELL_WORDS else ()


def _only_command(script: str, *, is_bash: bool) -> SimpleCommand | None:
    try:
        commands = _parsed(parser.ShellScript(script, is_bash=is_bash))
    except ShellSyntaxError:
        return None
    command = commands[0] if len(commands) == 1 else None
    if isinstance(command, CommandList) and len(command.items) == 1:
        command = command.items[0][1]
    return command if isinstance(command, SimpleCommand) else None


def _parsed(script: parser.ShellScript) -> list[Command]:
    """Return the first commands of a script, at most two; none if that takes long, as one program does not."""
    commands: list[Command] = []
    for _ in range(2):
        try:
            next(script.next_command())
        except StopIteration as stop:
            if stop.value is None:
                break
            commands.append(stop.value)
        else:
            return []
    return commands


def _literal(word: Word | Assignment) -> str | None:
    """Return the text of a word that a shell does not expand; None for others."""
    if isinstance(word, Assignment):
        return None
    texts = [part for part in word if isinstance(part, Text)]
    if len(texts) < len(word) or any(not text.quoted and _EXPANDED & {*text.text} for text in texts):
        return None
    return "".join(text.text for text in texts)
