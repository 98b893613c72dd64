"""The simple commands in the command of a container, as far as they can be read without running it. Pure."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mockube.container_runtime.images.table import ENTRYPOINT
from mockube.container_runtime.simulated.shell.options import has_letter
from mockube.container_runtime.simulated.shell.syntax import BASH_KEYWORDS, KEYWORDS

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_WRAPPERS: Final = frozenset(
    {ENTRYPOINT, "exec", "nohup", "command", "env", "sudo", "tini", "dumb-init", "setsid", "time", "--", "-"}
)
"""The words before the program that a command really runs."""
_OPTIONS_WITH_VALUES: Final[Mapping[str, frozenset[str]]] = {
    "exec": frozenset({"-a"}),
    "env": frozenset({"-u", "-C", "--unset", "--chdir"}),
    "sudo": frozenset({"-u", "-g"}),
    "tini": frozenset({"-p", "-e"}),
    "dumb-init": frozenset({"-r", "--rewrite"}),
    "setsid": frozenset(),
}
"""The programs among them that have options, with those whose value is the next word."""
_PUNCTUATION: Final = "();<>|&\n`"
_LISTS: Final = frozenset({"for", "case", "select", "function"})
"""The keywords that are followed by words which are no command."""
_ARGUMENTS: Final = frozenset({"$@", "$*"})
_KEYWORDS: Final = KEYWORDS | BASH_KEYWORDS
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


def is_script(words: Sequence[str]) -> bool:
    """Return whether a command is a shell, which may call a program later or never."""
    rest = _without_wrappers(words)
    return bool(rest) and rest[0].rpartition("/")[2] in _SHELLS


def simple_commands(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the commands of a command: those of the script of a shell, or itself."""
    words = _without_wrappers(words)
    if not words or words[0].rpartition("/")[2] not in _SHELLS:
        yield words
        return
    at = next((index for index, word in enumerate(words[1:], 1) if has_letter(word, "c")), None)
    if at is None or at + 1 >= len(words):
        if len(words) > 1 and not all(word.startswith("-") for word in words[1:]):
            yield [next(word for word in words[1:] if not word.startswith("-"))]  # a file with a script
        return
    for command in _commands_of_script(words[at + 1]):
        rest = _without_wrappers(command)
        while rest and rest[0] in _KEYWORDS:
            rest = [] if rest[0] in _LISTS else _without_wrappers(rest[1:])
        if rest:
            yield rest


def only_command(words: Sequence[str], programs: Sequence[str]) -> Sequence[str]:
    """Return the simple command of a command that consists of it alone, and runs one of some programs; () if there is none.

    The arguments of a script are not known.
    """
    if not any(name in word for word in words for name in programs):
        return ()
    commands = [*simple_commands(words)]
    if len(commands) != 1 or commands[0][0].rpartition("/")[2] not in programs:
        return ()
    return commands[0] if _ARGUMENTS.isdisjoint(commands[0]) else ()


def _commands_of_script(script: str) -> Iterator[list[str]]:
    """Yield the words of each simple command in a script, without comments and redirections."""
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    command, skips_target, is_comment = list[str](), False, False
    try:
        for word in lexer:
            is_operator = bool(word) and not word.strip(_PUNCTUATION)
            is_comment = (is_comment or word.startswith("#")) and "\n" not in word
            if is_comment:
                continue
            if is_operator and ("<" in word or ">" in word) and "(" not in word:
                skips_target = True
            elif is_operator:
                yield command
                command, skips_target = [], False
            elif skips_target:
                skips_target = False
            else:
                command.append(word)
    except ValueError:  # a quotation that does not end: what follows is not read
        pass
    yield command


def _without_wrappers(words: Sequence[str]) -> Sequence[str]:
    rest = list(words)
    while rest and (rest[0].rpartition("/")[2] in _WRAPPERS or _ASSIGNMENT.fullmatch(rest[0])):
        values = _OPTIONS_WITH_VALUES.get(rest.pop(0).rpartition("/")[2])
        while values is not None and rest and rest[0].startswith("-"):
            del rest[: 2 if rest[0] in values else 1]
    return rest
