"""Programs that list and signal processes: kill, ps, pgrep, pkill, pidof, killall, uptime, nproc, free."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.process import (
    FIRST_PID,
    Child,
    CommandStart,
    ListedProcess,
    MissingArguments,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    RunningProcess,
    Sleep,
    Steps,
    UnknownProgram,
    write_text,
)
from mockube.container_runtime.simulated.shell.signals import NAMES, SIGNAL_CODE, signal_number

_TERM: Final = 15
_MAX_DIGITS: Final = 18
_TOP_SECONDS: Final = 5.0
"""How long top waits between two lists."""
_SHELL_WITH_SCRIPT: Final = 3
"""The words of `sh -c SCRIPT`."""
_REDIRECTION: Final = re.compile(r"\d?[<>]")
_USAGE: Final = "Usage: kill [-s sigspec | -signum | -sigspec] [pid | job]... or\nkill -l [exitstatus]"


def kill(process: Process) -> Run:
    arguments = list(process.arguments)
    signal = _TERM
    if arguments and arguments[0] in ("-l", "-L"):
        return (yield from _list_signals(arguments[1:]))
    if arguments and arguments[0].startswith("-") and arguments[0] != "--":
        option = arguments.pop(0)[1:]
        name = (arguments.pop(0) if arguments else "") if option in ("s", "n") else option
        number = signal_number(name)
        if number is None:
            message = (
                f"Illegal option -{name[:1]}" if name == option else f"invalid signal number or name: {name}"
            )
            raise ProgramUsageError(message, 2, bash=f"{name}: invalid signal specification", bash_code=1)
        signal = number
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not arguments:
        raise MissingArguments(_USAGE, 2)
    code = 0
    for argument in arguments:
        targets = _targets(process, argument)
        if not targets:
            yield _no_such_process(process, argument)
            code = 1
        for target in targets if signal else ():
            target.send_signal(signal)
            yield CommandStart()  # a process that signals itself may end here
    return code


def _no_such_process(process: Process, argument: str) -> Output:
    if process.is_bash:
        return process.error(f"({argument}) - No such process")
    if process.host.has_busybox:  # its shell says that without the name of the builtin
        return process.report(f"{process.place or 'kill: '}can't kill pid {argument}: No such process")
    return process.error("No such process\n")


def _targets(process: Process, argument: str) -> Sequence[RunningProcess]:
    """Return the processes with an id, or those of a group; all processes of a command are in one group."""
    digits = argument.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        words = f"{argument}: arguments must be process or job IDs"
        raise ProgramUsageError(f"Illegal number: {argument}", 2, bash=words, bash_code=1)
    if argument == "0":
        return process.processes.children()
    if argument == "-1":
        return [one for one in _processes(process) if one.pid != FIRST_PID]
    pid = int(digits[:_MAX_DIGITS])
    if argument.startswith("-"):
        return [one for one in _children(process) if one.pid == pid]
    own = [one for one in process.processes.listed_processes() if one.pid == pid]
    return own or [one for one in process.host.other_processes if one.pid == pid]


def _list_signals(arguments: Sequence[str]) -> Run:
    if not arguments:
        yield write_text("".join(f"{number:2}) {name}\n" for number, name in NAMES.items()))
        return 0
    for argument in arguments:
        number = signal_number(argument)
        if argument.isdecimal():
            value = int(argument[:9])
            number = value - SIGNAL_CODE if value > SIGNAL_CODE else value
            yield write_text(f"{NAMES.get(number, number)}\n")
        elif number is not None:
            yield write_text(f"{number}\n")
        else:
            words = f"{argument}: invalid signal specification"
            raise ProgramUsageError(f"Illegal number: {argument}", 2, bash=words, bash_code=1)
    return 0


def _user(process: Process) -> str:
    return process.host.user_names.get(process.host.user, str(process.host.user))


def _children(process: Process) -> Sequence[Child]:
    """Return the processes of the command."""
    return sorted(process.processes.children(), key=lambda child: child.pid)


def _processes(process: Process) -> Sequence[RunningProcess]:
    """Return all processes of the container."""
    return [*process.host.other_processes, *process.processes.listed_processes()]


def _searched(process: Process) -> Sequence[RunningProcess]:
    """Return the processes of the container among which pgrep searches: all but the present one."""
    own = [one for one in process.processes.listed_processes() if not _is_present(process, one)]
    return [*process.host.other_processes, *own]


def _is_present(process: Process, other: ListedProcess) -> bool:
    if other.owner.pid != process.processes.current_pid():
        return False
    return list(other.name) == list(process.argv) or _becomes(other.name, process.argv)


def _becomes(shell: Sequence[str], argv: Sequence[str]) -> bool:
    """Return whether a shell becomes the program with which its script ends: it executes the last one in its own process."""
    if len(shell) < _SHELL_WITH_SCRIPT or not shell[-2].startswith("-"):
        return shell[0].rpartition("/")[2] == argv[0].rpartition("/")[2] and list(shell[1:]) == list(argv[1:])
    try:
        words = shlex.split(shell[-1])
    except ValueError:
        return False
    words = words[: next((index for index, word in enumerate(words) if _REDIRECTION.match(word)), None)]
    return words[-len(argv) :] == list(argv) and "|" not in words


def ps(process: Process) -> Run:
    """Print all processes as busybox does, which ignores the options that other systems have for that."""
    arguments = process.arguments
    columns = [*_DEFAULT_COLUMNS]
    if arguments and (arguments[0].startswith("-o") or arguments[0] == "-eo"):
        names = arguments[0][2:] if arguments[0].startswith("-o") else ""
        columns = [_column(name) for name in (names or "".join(arguments[1:2])).split(",")]
    elif any(word.lstrip("-") in ("o", "p", "C", "u", "U", "t", "format") for word in arguments):
        raise ProgramUsageError(f"option is not simulated: {arguments[0]}")
    process.host.unlisted = _unknown_processes(process)
    titles = [column.title for column in columns]
    lines = [titles] if any(titles) else []
    lines += [[column.text(row).rjust(column.digits) for column in columns] for row in _rows(process)]
    for cells in lines:
        padded = [cell.ljust(column.width) for cell, column in zip(cells, columns, strict=True)]
        yield write_text(" ".join([*padded[:-1], cells[-1]]) + "\n")
    return 0


class _Row(NamedTuple):
    pid: int
    parent: int
    user: str
    seconds: int
    """The time of the processor that it has used."""
    command: str


class _Column(NamedTuple):
    title: str
    width: int
    text: Callable[[_Row], str]
    digits: int = 0
    """How many places a number takes, with blanks before it."""


_COLUMNS: Final[Mapping[str, _Column]] = {
    "pid": _Column("PID", 5, lambda row: f"{row.pid}", 5),
    "ppid": _Column("PPID", 5, lambda row: f"{row.parent}", 5),
    "user": _Column("USER", 8, lambda row: row.user),
    "stat": _Column("STAT", 4, lambda _: "S"),
    "time": _Column("TIME", 5, lambda row: f"{row.seconds // 60:2}:{row.seconds % 60:02}"),
    "comm": _Column("COMMAND", 16, lambda row: row.command.partition(" ")[0].rpartition("/")[2][:15]),
    "args": _Column("COMMAND", 0, lambda row: row.command),
}
"""The columns of busybox of which something is known."""
_DEFAULT_COLUMNS: Final = tuple(_COLUMNS[name] for name in ("pid", "user", "time", "args"))


def _column(name: str) -> _Column:
    name, has_title, title = name.strip().partition("=")
    column = _COLUMNS.get({"cmd": "args", "command": "args"}.get(name, name))
    if column is None:
        raise ProgramUsageError(f"column is not simulated: {name}")
    return column._replace(title=title) if has_title else column


def _rows(process: Process) -> list[_Row]:
    """Return all processes of the container, and the present program, by their ids."""
    host, user = process.host, _user(process)
    rows = [
        _Row(other.pid, 0, host.user_names.get(other.user, f"{other.user}"), 0, " ".join(other.argv))
        for other in host.other_processes
    ]
    for entry in process.processes.listed_processes():
        seconds = 0 if rows and host.other_processes else int(process.processes.time - entry.owner.started)
        rows.append(_Row(entry.pid, 0, user, seconds, " ".join(entry.name)))
    pid = process.processes.next_pid()
    if all(row.command != " ".join(process.argv) for row in rows):
        rows.append(_Row(pid, host.first_pid, user, 0, " ".join(process.argv)))
    return sorted(rows, key=lambda row: row.pid)


def top(process: Process) -> Run:
    """Print the processes, as `top -b -n1`, or again and again; without -b a terminal would show them."""
    options = parse_options(process.arguments, "bn:d:Hm")
    if "b" not in options and "n" not in options:
        raise ProgramUsageError("is simulated with -b and -n1")
    count, seconds = options.get("n"), options.get("d")
    iterations = int(count[:_MAX_DIGITS]) if count.isdecimal() else inf
    while True:
        yield CommandStart()
        yield from _print_top(process)
        iterations -= 1
        if iterations <= 0:
            return 0
        yield Sleep(float(seconds[:_MAX_DIGITS]) if seconds.isdecimal() else _TOP_SECONDS)


def _print_top(process: Process) -> Steps:
    process.host.unlisted = _unknown_processes(process)
    host, rows = process.host, _rows(process)
    total = host.memory_bytes // 1024
    lines = [
        f"Mem: 0K used, {total}K free, 0K shrd, 0K buff, 0K cached",
        "CPU:   0% usr   0% sys   0% nic 100% idle   0% io   0% irq   0% sirq",
        f"Load average: 0.00 0.00 0.00 1/{len(rows)} {rows[-1].pid}",
        "  PID  PPID USER     STAT   VSZ %VSZ CPU %CPU COMMAND",
        *(f"{row.pid:5} {row.parent:5} {row.user:<8} S        0   0%   0   0% {row.command}" for row in rows),
    ]
    yield write_text("".join(f"{line}\n" for line in lines))


def _matches(pattern: str, text: str, *, is_exact: bool) -> bool:
    if len(pattern) > limits.MAX_PROCESS_PATTERN or not re.fullmatch(r"[\w ./^$:@=,+-]*", pattern):
        raise ProgramUsageError("this pattern is not simulated", 2)
    plain = pattern.removeprefix("^").removesuffix("$")
    if is_exact or (pattern.startswith("^") and pattern.endswith("$")):
        return text == plain
    if pattern.startswith("^"):
        return text.startswith(plain)
    return text.endswith(plain) if pattern.endswith("$") else plain in text


def pgrep(process: Process) -> Run:
    is_kill = process.name == "pkill"
    arguments = list(process.arguments)
    signal: int | None = _TERM
    if is_kill and arguments and arguments[0].startswith("-") and signal_number(arguments[0][1:]) is not None:
        signal = signal_number(arguments.pop(0)[1:])
    options = parse_options(arguments, "flanovx", code=2)
    if not options.arguments:
        raise ProgramUsageError(f"usage: {process.name} [-flanovx] PATTERN", 2)
    pattern = options.arguments[0]
    matching = [
        found
        for found in _searched(process)
        if _matches(pattern, _searched_text(found, full="f" in options), is_exact="x" in options)
        is not ("v" in options)
    ]
    _fail_if_unknown(process, is_found=is_kill or bool(matching))
    matching = matching[-1:] if "n" in options else matching[:1] if "o" in options else matching
    for found in matching:
        if is_kill:
            found.send_signal(signal or 0)
            yield CommandStart()
        elif options.has_any("la"):
            yield write_text(
                f"{found.pid} {' '.join(found.name) if 'a' in options else _searched_text(found, full=False)}\n"
            )
        else:
            yield write_text(f"{found.pid}\n")
    return int(not matching)


def _fail_if_unknown(process: Process, *, is_found: bool) -> None:
    """Raise `UnknownProgram` if a search that finds nothing might find a process on a real node."""
    if not is_found and process.host.is_strict and (unknown := _unknown_processes(process)):
        raise UnknownProgram(unknown)


def _unknown_processes(process: Process) -> str:
    """Return which processes of the container nobody knows; "" if there are none."""
    others = process.host.other_processes
    return next((f"what {other.argv[0]} starts" for other in others if other.may_have_others), "")


def _searched_text(found: RunningProcess, *, full: bool) -> str:
    """Return what a search compares: of a server with a title, such as `nginx: master process` or `redis-server *:6379`, its first word."""
    return " ".join(found.name) if full else re.split("[: ]", found.name[0])[0].rpartition("/")[2]


def pidof(process: Process) -> Run:
    options = parse_options(process.arguments, "s")
    pids = [
        str(found.pid)
        for found in reversed(_searched(process))
        if _searched_text(found, full=False) in options.arguments and str(found.pid) not in options.all("o")
    ]
    _fail_if_unknown(process, is_found=bool(pids))
    if pids:
        yield write_text(" ".join(pids[:1] if "s" in options else pids) + "\n")
    return int(not pids)


def kill_all(process: Process) -> Run:
    arguments = list(process.arguments)
    signal: int | None = _TERM
    if arguments and arguments[0].startswith("-") and signal_number(arguments[0][1:]) is not None:
        signal = signal_number(arguments.pop(0)[1:])
    code = 0
    for name in arguments:
        targets = [found for found in _searched(process) if _searched_text(found, full=False) == name]
        for found in targets:
            found.send_signal(signal or 0)
            yield CommandStart()
        if not targets:
            yield process.error(f"{name}: no process killed")
            code = 1
    return code


def uptime(process: Process) -> Run:
    now = process.host.now_running()
    seconds = int(process.host.seconds_up() or process.processes.time)
    yield write_text(
        f" {now:%H:%M:%S} up {seconds // 3600}:{seconds // 60 % 60:02},  load average: 0.00, 0.00, 0.00\n"
    )
    return 0


def processors(process: Process) -> Run:
    parse_options(process.arguments, "", long={"all": "a", "ignore": "i"})
    yield write_text(f"{process.host.cpus}\n")
    return 0


def free(process: Process) -> Run:
    options = parse_options(process.arguments, "bkmg")
    unit = {"b": 1, "m": 1 << 20, "g": 1 << 30}.get(
        next((letter for letter in "bmg" if letter in options), ""), 1024
    )
    total = process.host.memory_bytes // unit
    head = f"{'':14}{'total':>11} {'used':>11} {'free':>11} {'shared':>11} {'buff/cache':>11} {'available':>11}\n"
    row = f"{'Mem:':14}{total:11} {0:11} {total:11} {0:11} {0:11} {total:11}\n"
    yield write_text(f"{head}{row}{'Swap:':14}{0:11} {0:11} {0:11}\n")
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {
    "kill": kill,
    "ps": ps,
    "top": top,
    "pgrep": pgrep,
    "pkill": pgrep,
    "pidof": pidof,
    "killall": kill_all,
    "uptime": uptime,
    "nproc": processors,
    "free": free,
}
