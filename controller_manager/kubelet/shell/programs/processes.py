"""Programs that list and signal processes: kill, ps, pgrep, pkill, pidof."""

from collections.abc import Mapping, Sequence
from typing import Final

from mockube.controller_manager.kubelet.shell.process import CommandStart, Process, Program, Run, write_text
from mockube.controller_manager.kubelet.shell.signals import NAMES, signal_number

_TERM: Final = 15
_SIGNAL_CODE: Final = 128


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
            yield process.error(
                f"Illegal option -{name}" if option == name else f"invalid signal number or name: {name}"
            )
            return 2
        signal = number
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not arguments:
        yield process.error("usage: kill [-s sigspec | -signum | -sigspec] [pid | job]...")
        return 2
    code = 0
    for argument in arguments:
        digits = argument.removeprefix("-")
        if not digits.isdecimal():
            yield process.error(f"Illegal number: {argument}")
            return 2
        target = next((each for each in process.processes.children() if each.pid == int(digits)), None)
        if target is None:
            yield process.error("No such process")
            code = 1
        elif signal:
            target.send_signal(signal)
            yield CommandStart()  # a process that signals itself may end here
    return code


def _list_signals(arguments: Sequence[str]) -> Run:
    if not arguments:
        yield write_text("".join(f"{number:2}) {name}\n" for number, name in NAMES.items()))
        return 0
    for argument in arguments:
        number = signal_number(argument)
        if argument.isdecimal():
            value = int(argument[:9])
            number = value - _SIGNAL_CODE if value > _SIGNAL_CODE else value
            yield write_text(f"{NAMES.get(number, number)}\n")
        elif number is not None:
            yield write_text(f"{number}\n")
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {"kill": kill}
