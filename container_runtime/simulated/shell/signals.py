"""Signals: their names, and the traps of a shell."""

from collections.abc import Mapping, Sequence
from typing import Final

from .process import Run, Steps
from .state import Shell, ShellExit
from .syntax import ShellSyntaxError

SIGNALS: Final[Mapping[str, int]] = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10,
    "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16, "CHLD": 17, "CONT": 18,
    "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24, "XFSZ": 25, "VTALRM": 26,
    "PROF": 27, "WINCH": 28, "IO": 29, "PWR": 30, "SYS": 31,
}  # fmt: skip
NAMES: Final[Mapping[int, str]] = {number: name for name, number in SIGNALS.items()}


_ENDING: Final = frozenset(SIGNALS[name] for name in ("HUP", "INT", "PIPE", "ALRM", "TERM", "USR1", "USR2"))
"""The signals that end a shell which does not handle them."""
SIGNAL_CODE: Final = 128
"""What is added to the number of a signal in the exit code of a process that it ends."""
_WORDS: Final[Mapping[int, str]] = {
    SIGNALS[name]: words
    for name, words in {
        "HUP": "Hangup", "QUIT": "Quit", "ILL": "Illegal instruction", "TRAP": "Trace/breakpoint trap", "ABRT": "Aborted",
        "BUS": "Bus error", "FPE": "Floating point exception", "KILL": "Killed", "USR1": "User defined signal 1",
        "SEGV": "Segmentation fault", "USR2": "User defined signal 2", "ALRM": "Alarm clock", "TERM": "Terminated",
        "STKFLT": "Stack fault", "XCPU": "CPU time limit exceeded", "XFSZ": "File size limit exceeded",
        "VTALRM": "Virtual timer expired", "PROF": "Profiling timer expired", "IO": "I/O possible", "PWR": "Power failure",
        "SYS": "Bad system call",
    }.items()
}  # fmt: skip
"""What shells say of a process that a signal has ended; nothing about INT and PIPE."""
_QUIET_IN_BASH: Final = frozenset({SIGNALS["TERM"]})
"""The signals of which bash says nothing but the words."""


def signal_number(text: str) -> int | None:
    """Return the number of a signal by its name, with or without SIG, or by its number."""
    if text.isascii() and text.isdecimal():
        number = int(text[:9])
        return number if number == 0 or number in NAMES else None
    name = text.upper()
    return SIGNALS.get(name.removeprefix("SIG"))


def condition_name(text: str) -> str | None:
    """Return the name under which a trap is stored: EXIT, ERR, DEBUG, RETURN or a signal's."""
    name = text.upper().removeprefix("SIG")
    if name in ("EXIT", "0"):
        return "EXIT"
    if name in ("ERR", "DEBUG", "RETURN"):
        return name
    number = signal_number(text)
    return None if number is None else NAMES.get(number)


def caught_signals(shell: Shell) -> dict[int, str]:
    """Return the signals that a shell handles, or ignores with an empty text.

    Those that were ignored when it started remain so. bash with a trap for its exit handles those that end it.
    """
    caught = {SIGNALS[name]: action for name, action in shell.traps.items() if name in SIGNALS}
    if shell.is_bash and "EXIT" in shell.traps:
        caught = {**dict.fromkeys(_ENDING, "exit"), **caught}
    return {**caught, **dict.fromkeys(shell.ignored_signals, "")}


def run_pending_traps(shell: Shell) -> Steps:
    """Execute the traps of the signals that the shell's process has received."""
    if not shell.traps or not shell.owns_process:
        return
    for number in shell.process.processes.take_signals():
        action = shell.traps.get(NAMES[number])
        if action is None and number in _ENDING:
            yield from shell.run_text(shell.traps.pop("EXIT", ""))
            raise ShellExit(SIGNAL_CODE + number)
        if action:
            status = shell.status
            yield from shell.run_text(action)
            shell.status = status


def report_killed(shell: Shell, number: int, pid: int, argv: Sequence[str]) -> Steps:
    """Write what a shell says of a process for which it has waited, and which a signal has ended."""
    words = _WORDS.get(number)
    if words is None:
        return
    if not shell.is_bash or number in _QUIET_IN_BASH:
        yield from shell.write(2, f"{words}\n")
    else:
        yield from shell.report(f"{pid:5} {words:<24}{' '.join(argv)}".rstrip())


def run_with_traps_of_function(shell: Shell, execution: Run) -> Run:
    """Execute a function, and then the trap for RETURN that it has set.

    It inherits the traps for RETURN and ERR only with functrace and errtrace.
    """
    hidden = {
        name: shell.traps.pop(name)
        for name, option in (("RETURN", "functrace"), ("ERR", "errtrace"))
        if option not in shell.options and name in shell.traps
    }
    try:
        code = yield from execution
        if action := shell.traps.get("RETURN"):
            yield from shell.run_text(action)
        return code
    finally:
        for name, action in hidden.items():
            shell.traps.setdefault(name, action)


def exit_trap(shell: Shell, code: int) -> Run:
    """Execute the trap for the end of a shell; return the shell's exit code."""
    action = shell.traps.pop("EXIT", "")
    if not action:
        return code
    shell.status = code
    try:
        yield from shell.run_text(action)
    except ShellExit as stop:
        return stop.code
    except ShellSyntaxError as error:
        yield from shell.report_error(error)
        return 2
    return code
