"""ps as procps prints it: the processes of a node, with those of its containers."""

from collections.abc import Iterator
from typing import Final

from mockube.container_runtime.simulated.shell.process import FIRST_PID, Process, Run, write_text
from mockube.container_runtime.simulated.shell.programs import processes

_DAY: Final = 86_400
_LONG: Final = frozenset({"aux", "auxw", "auxww", "-aux", "ax", "axu"})
_FULL: Final = frozenset({"-ef", "-eF", "-efww", "-elf", "-Af"})


def ps(process: Process) -> Run:
    words = process.arguments
    if len(words) != 1 or words[0] not in _LONG | _FULL:
        return (yield from processes.ps(process))
    is_long = words[0] in _LONG
    title = (
        "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND"
        if is_long
        else "UID          PID    PPID  C STIME TTY          TIME CMD"
    )
    lines = [title]
    for user, pid, start, command in _rows(process):
        parent = 0 if pid == FIRST_PID else FIRST_PID
        lines.append(
            f"{user:<8} {pid:>7}  0.0  0.0      0     0 ?        Ss   {start}   0:00 {command}"
            if is_long
            else f"{user:<8} {pid:>7} {parent:>7}  0 {start} ?        00:00:00 {command}"
        )
    yield write_text("".join(f"{line}\n" for line in lines))
    return 0


def _rows(process: Process) -> Iterator[tuple[str, int, str, str]]:
    host = process.host
    now = host.now_running(is_shown=True)
    for other in host.other_processes:
        age = (now - other.started).total_seconds()
        start = f"{other.started:%H:%M}" if age < _DAY else f"{other.started:%b%d}"
        yield host.user_names.get(other.user, str(other.user)), other.pid, start, " ".join(other.argv)
    start = f"{now:%H:%M}"
    for entry in process.processes.listed_processes():
        yield host.user_names.get(host.user, ""), entry.pid, start, " ".join(entry.name)
