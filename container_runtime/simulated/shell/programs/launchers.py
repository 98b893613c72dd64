"""Programs that start other programs: env, xargs, timeout, time, nohup, nice, chroot's siblings."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.invocation import run_program
from mockube.container_runtime.simulated.shell.invoking import CommandNotFound, note_unknown
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Output,
    Process,
    Program,
    ProgramKilled,
    ProgramUsageError,
    Run,
    Sleep,
    UnknownProgram,
    WaitUntil,
    decoded,
    write_text,
)
from mockube.container_runtime.simulated.shell.signals import signal_number
from mockube.container_runtime.simulated.shell.streams import NullStream

from .durations import seconds_of
from .inputs import read_all

_PARSED_AT_ONCE: Final = 1024
"""The characters in which xargs finds its items in the time of a command."""
_TIMED_OUT: Final = 124
_KILL: Final = 9
_XARGS_FAILED: Final = 123
_QUOTE: Final = re.compile(r"[\"'\\]")
_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|\\.", re.DOTALL)
_ITEM: Final = re.compile(r"(?:[^\s'\"\\]+|'[^'\n]*'|\"[^\"\n]*\"|\\[\s\S])+")


def run_other(
    process: Process,
    argv: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    becomes: bool = False,
) -> Run:
    """Run another program, beside the present one or in its place; return 127 or 126 with a message if it cannot be executed."""
    other = process.child(argv, environment)
    if becomes:
        process.processes.become(argv)
        other.is_executed, other.parent = process.is_executed, process.parent
    try:
        return (yield from run_program(other))
    except CommandNotFound as error:
        note_unknown(other, error)
        words = "No such file or directory" if error.code == 127 else str(error)
        yield process.error(f"can't execute '{argv[0]}': {words}")
        return error.code


def env(process: Process) -> Run:
    options = parse_options(
        process.arguments, "i0u:S:", long={"ignore-environment": "i", "unset": "u"}, stops=True
    )
    arguments = list(options.arguments)
    if options.get("S"):
        arguments = [*shlex.split(options.get("S")), *arguments]
    clears = "i" in options
    if arguments[:1] == ["-"]:
        clears, arguments = True, arguments[1:]
    environment = {} if clears else dict(process.environment)
    for name in options.all("u"):
        environment.pop(name, None)
    count = 0
    while count < len(arguments) and "=" in arguments[count]:
        name, _, value = arguments[count].partition("=")
        environment[name] = value
        count += 1
    if arguments := arguments[count:]:
        return (yield from run_other(process, arguments, environment, becomes=True))
    if not clears:
        process.host.ask_variable("")
    end = "\0" if "0" in options else "\n"
    yield write_text("".join(f"{name}={value}{end}" for name, value in environment.items()))
    return 0


def timeout(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "fpvs:k:",
        long={"signal": "s", "kill-after": "k", "foreground": "f", "preserve-status": "p"},
        stops=True,
        code=125,
    )
    arguments = options.arguments
    if len(arguments) < 2:
        raise ProgramUsageError("usage: timeout [-s SIG] [-k KILL_SECS] SECS PROG ARGS", 125)
    seconds = seconds_of(arguments[:1])
    signal = signal_number(options.get("s", "TERM"))
    kill_after = seconds_of([options.get("k")]) if "k" in options else None
    if seconds is None or signal is None:
        raise ProgramUsageError(
            f"invalid number '{arguments[0]}'" if seconds is None else "bad signal name", 125
        )
    processes = process.processes
    child = processes.start(arguments[1:], run_other(process, arguments[1:]), process.descriptors)
    try:
        yield WaitUntil(lambda: child.code is not None, seconds or float("inf"))
    except ProgramKilled as killed:
        child.send_signal(killed.number)
        raise
    if not child.is_running():
        return child.code or 0
    child.send_signal(signal)
    if child.is_running():
        yield WaitUntil(lambda: child.code is not None, float("inf") if kill_after is None else kill_after)
    child.send_signal(_KILL)
    code = child.code or 0
    if "p" in options:
        return code
    return 128 + _KILL if signal == _KILL or code == 128 + _KILL else _TIMED_OUT


def time(process: Process) -> Run:
    options = parse_options(process.arguments, "p", stops=True)
    begin = process.processes.time
    if not options.arguments:
        return 0
    code = yield from run_other(process, options.arguments)
    minutes, seconds = divmod(process.processes.time - begin, 60)
    if "p" in options:
        text = f"real {minutes * 60 + seconds:.2f}\nuser 0.00\nsys 0.00\n"
    else:
        text = f"real\t{int(minutes)}m {seconds:.2f}s\nuser\t0m 0.00s\nsys\t0m 0.00s\n"
    yield Output(2, text.encode())
    return code


def _run_rest(letters: str, *, stays: bool = False, **long: str) -> Program:
    """Return a program that another one behind its options replaces, such as nohup, or beside which that runs if it `stays`.

    `long` maps its long options to their letters.
    """
    names = {name.replace("_", "-"): letter for name, letter in long.items()}

    def run(process: Process) -> Run:
        options = parse_options(process.arguments, letters, long=names, stops=True)
        if not options.arguments:
            raise ProgramUsageError("no program specified")
        return (yield from run_other(process, options.arguments, becomes=not stays))

    return run


def xargs(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "0rtoxn:I:s:L:P:E:d:",
        long={
            "null": "0",
            "no-run-if-empty": "r",
            "max-args": "n",
            "replace": "I",
            "max-procs": "P",
            "delimiter": "d",
            "max-lines": "L",
        },
        stops=True,
    )
    command = options.arguments or ["echo"]
    text = yield from decoded((yield from read_all(process, [])))
    items: list[str] = []
    for part in _parts(text, options):
        yield CommandStart()
        items += _items(part, options)
        if any(len(item) > limits.MAX_ARGUMENT for item in items[-1:]):
            raise ProgramUsageError("argument line too long")
        if len(items) > limits.MAX_SORTED_LINES:
            raise ProgramUsageError("the input has too many items")
    if "E" in options and options.get("E") in items:
        items = items[: items.index(options.get("E"))]
    if not items and ("r" in options or "I" in options):
        return 0
    child = process.child(process.argv, descriptors={**process.descriptors, 0: NullStream()})
    code = 0
    for argv in _command_lines(command, items, options):
        if "t" in options:
            yield Output(2, f"{' '.join(argv)}\n".encode())
        ended_code = yield from run_other(child, argv)
        if ended_code in (126, 127):
            return ended_code
        if ended_code == 255:
            yield process.error(f"{argv[0]}: exited with status 255; aborting")
            return 124
        code = _XARGS_FAILED if ended_code else code
    return code


def _parts(text: str, options: ProgramOptions) -> Iterator[str]:
    """Yield the parts of the input, which a mark or the end of a line separates."""
    mark, start = _mark(options) or "\n", 0
    while (end := text.find(mark, start + _PARSED_AT_ONCE)) >= 0:
        if text[end - 1] == "\\" and not _mark(options):
            end = len(text)
        yield text[start:end]
        start = end + len(mark)
    if len(text) - start > 16 * limits.MAX_ARGUMENT:
        raise ProgramUsageError("argument line too long")
    yield text[start:]


def _mark(options: ProgramOptions) -> str:
    """Return what separates the items; "" for blanks and newlines."""
    return "\0" if "0" in options else options.get("d").replace("\\n", "\n")


def _items(text: str, options: ProgramOptions) -> list[str]:
    if mark := _mark(options):
        return [item for item in text.split(mark) if item or mark != "\0"] if text else []
    if "I" in options or "L" in options:
        return [line.strip() for line in text.split("\n") if line.strip()]
    if not _QUOTE.search(text):
        return text.split()
    rest = _ITEM.sub("", text).strip()
    if rest:
        raise ProgramUsageError(f"unmatched {'single' if rest[0] == chr(39) else 'double'} quote")
    return [_unquote(match[0]) for match in _ITEM.finditer(text)]


def _unquote(item: str) -> str:
    return _QUOTED.sub(lambda match: match[0][1:] if match[0][0] == "\\" else match[0][1:-1], item)


def _command_lines(
    command: Sequence[str], items: Sequence[str], options: ProgramOptions
) -> Iterator[list[str]]:
    if "I" in options:
        mark = options.get("I") or "{}"
        return ([word.replace(mark, item) for word in command] for item in items)
    if "L" in options:
        return ([*command, *item.split()] for item in items)
    count = options.get("n", str(limits.MAX_XARGS_ARGUMENTS))
    if not (count.isdecimal() and int(count[:9]) > 0):
        raise ProgramUsageError(f"invalid number '{count}'")
    size = min(int(count[:9]), limits.MAX_XARGS_ARGUMENTS)
    return ([*command, *items[start : start + size]] for start in range(0, max(len(items), 1), size))


def pause(_: Process) -> Run:
    yield Sleep(float("inf"))
    return 0


def busybox(process: Process) -> Run:
    """Run the program of busybox that the first argument names."""
    if not process.arguments:
        raise UnknownProgram(process.name)
    return (yield from run_other(process, process.arguments, becomes=True))


PROGRAMS: Final[Mapping[str, Program]] = {
    "busybox": busybox,
    "env": env,
    "timeout": timeout,
    "time": time,
    "xargs": xargs,
    "pause": pause,
    "nohup": _run_rest(""),
    "nice": _run_rest("n:", adjustment="n"),
    "ionice": _run_rest("tc:n:p:"),
    "setsid": _run_rest("c"),
    "tini": _run_rest("svwglp:e:", stays=True),
    "dumb-init": _run_rest("cvr:", stays=True, single_child="c", verbose="v", rewrite="r"),
    "catatonit": _run_rest("P", stays=True),
    "stdbuf": _run_rest("i:o:e:", input="i", output="o", error="e"),
}
