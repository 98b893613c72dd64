"""What the command of a container does: how long it runs, and with which code it ends.

Pure. It understands what people put into pods that only have to run, wait, end or fail; of any other command it knows
nothing, and the caller says what stands for it.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mockube.apimachinery.gotext import int_or_none

KILLED: Final = 137
"""The code of a process that SIGKILL ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    seconds: float | None
    """None for one that runs until it is stopped."""
    exit_code: int = 0
    stop_code: int = 0
    """With which it ends when it is stopped: a process that is not made to be stopped is killed."""


SERVICE: Final = Program(seconds=None)
ENDS_AT_ONCE: Final = Program(seconds=0)
RUNS_ON: Final = Program(seconds=None, stop_code=KILLED)

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_QUICK: Final = frozenset({"true", ":", "echo", "date", "printf", "hostname", "env", "ls", "cat", "test"})
_UNITS: Final[Mapping[str, int]] = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)([smhd]?)")
_ENDLESS_LOOPS: Final = frozenset({("while", "true"), ("while", ":"), ("until", "false")})
_PAUSE_IMAGE: Final = re.compile(r"(?:.*/)?pause(?:-[a-z0-9]+)?(?:[:@].*)?")


def program_of(container: Mapping[str, Any]) -> Program | None:
    """What the container does, or None where its command does not tell."""
    argv = [*(container.get("command") or ()), *(container.get("args") or ())]
    if argv:
        return _program(argv)
    return RUNS_ON if _PAUSE_IMAGE.fullmatch(container.get("image") or "") else None


def _program(argv: Sequence[str]) -> Program | None:
    name = argv[0].rpartition("/")[2]
    if name in _SHELLS:
        script = argv[2] if len(argv) > 2 and argv[1].startswith("-") and argv[1].endswith("c") else ""
        return _script(script) if script else None
    return _command(name, argv[1:])


def _command(name: str, arguments: Sequence[str]) -> Program | None:
    if name == "sleep":
        return _sleep(arguments)
    if name == "tail" and arguments[:1] == ["-f"]:
        return RUNS_ON
    if name == "false":
        return Program(seconds=0, exit_code=1)
    if name == "exit":
        return _exit(arguments)
    return ENDS_AT_ONCE if name in _QUICK else None


def _sleep(arguments: Sequence[str]) -> Program:
    if "infinity" in arguments or "inf" in arguments:
        return RUNS_ON
    spans = [_SPAN.fullmatch(argument) for argument in arguments]
    seconds = sum(float(span[1]) * _UNITS[span[2]] for span in spans if span is not None)
    if not spans or None in spans:
        return Program(seconds=0, exit_code=1)
    return Program(seconds=seconds, stop_code=KILLED)


def _exit(arguments: Sequence[str]) -> Program:
    code = arguments[0] if arguments else "0"
    number = int_or_none(code) if code.isdigit() else None
    return Program(seconds=0, exit_code=2 if number is None else number % 256)


def _script(text: str) -> Program | None:
    """Commands joined by `;`, `&&` and `||`, until the first that does not end, or `exit`."""
    seconds, code = 0.0, 0
    for joint, argv in _commands(text):
        if (joint == "&&" and code != 0) or (joint == "||" and code == 0):
            continue
        if tuple(argv[:2]) in _ENDLESS_LOOPS:
            return RUNS_ON
        program = _program(argv)
        if program is None or program.seconds is None:
            return program
        seconds, code = seconds + program.seconds, program.exit_code
        if argv[0] == "exit":
            break
    return Program(seconds=seconds, exit_code=code, stop_code=KILLED if seconds else 0)


def _commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with what joins it to the one before."""
    lexer = shlex.shlex(text.replace("\n", ";"), posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    joint, argv = ";", list[str]()
    for token in _tokens(lexer):
        if set(token) <= set(";&|") and token:
            if argv:
                yield joint, argv
            joint, argv = token, []
        else:
            argv.append(token)
    if argv:
        yield joint, argv


def _tokens(lexer: shlex.shlex) -> list[str]:
    try:
        return list(lexer)
    except ValueError:
        return ["?"]  # an unclosed quotation: no command that is known
