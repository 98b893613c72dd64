"""Programs that print or change what the system is like: date, env, id, uname, mount and the like."""

from collections.abc import Mapping
from posixpath import basename, dirname
from typing import Final

from mockube.apimachinery.gotext import int_or_none
from mockube.controller_manager.kubelet.shell.conditions import test
from mockube.controller_manager.kubelet.shell.filesystem import FileError
from mockube.controller_manager.kubelet.shell.process import (
    Process,
    Program,
    RepeatedIteration,
    Run,
    Sleep,
    UnknownProgram,
    write_text,
)
from mockube.controller_manager.kubelet.shell.programs.durations import seconds_of
from mockube.controller_manager.kubelet.shell.programs.expressions import expr

_YES_SECONDS: Final = 0.001
_MOUNTS: Final = (
    "overlay on / type overlay (rw,relatime)",
    "cgroup on /sys/fs/cgroup type cgroup2 (ro,nosuid,nodev,noexec,relatime)",
)


def succeed(_: Process) -> Run:
    return 0
    yield


def fail(_: Process) -> Run:
    return 1
    yield


def sleep(process: Process) -> Run:
    seconds = seconds_of(process.arguments)
    if seconds is None:
        yield process.error(f"invalid time interval {' '.join(process.arguments)!r}")
        return 1
    yield Sleep(seconds)
    return 0


def printenv(process: Process) -> Run:
    if not process.arguments:
        yield write_text("".join(f"{name}={value}\n" for name, value in process.environment.items()))
        return 0
    values = [process.environment[name] for name in process.arguments if name in process.environment]
    yield write_text("".join(f"{value}\n" for value in values))
    return int(len(values) < len(process.arguments))


def hostname(process: Process) -> Run:
    prints_address = any(argument in ("-i", "-I") for argument in process.arguments)
    yield write_text(f"{process.host.address if prints_address else process.host.name}\n")
    return 0


def pwd(process: Process) -> Run:
    yield write_text(f"{process.directory}\n")
    return 0


def whoami(process: Process) -> Run:
    if process.host.user:
        yield process.error(f"unknown uid {process.host.user}")
        return 1
    yield write_text("root\n")
    return 0


def user_id(process: Process) -> Run:
    host, group = process.host, _id_text(process.host.group)
    if "-u" in process.arguments:
        yield write_text(f"{host.user}\n")
    elif "-g" in process.arguments:
        yield write_text(f"{host.group}\n")
    else:
        yield write_text(f"uid={_id_text(host.user)} gid={group} groups={group}\n")
    return 0


def _id_text(number: int) -> str:
    return f"{number}" if number else "0(root)"


def uname(process: Process) -> Run:
    parts = {
        "s": "Linux",
        "n": process.host.name,
        "r": "mockube",
        "v": "simulated",
        "m": "x86_64",
        "o": "GNU/Linux",
    }
    options = "".join(process.arguments).replace("-", "") or "s"
    selected = parts if "a" in options else [letter for letter in parts if letter in options]
    yield write_text(" ".join(parts[letter] for letter in selected) + "\n")
    return 0


def program_paths(process: Process) -> Run:
    names = [name for name in process.arguments if name in process.host.programs]
    yield write_text("".join(f"/bin/{name}\n" for name in names))
    return int(len(names) < len(process.arguments))


def sequence(process: Process) -> Run:
    numbers = [int_or_none(argument) for argument in process.arguments]
    if not 1 <= len(numbers) <= 3 or None in numbers:
        yield process.error("invalid arguments")
        return 1
    first, step, last = {1: (1, 1, numbers[-1]), 2: (numbers[0], 1, numbers[-1])}.get(len(numbers), numbers)
    assert first is not None
    assert last is not None
    if not step:
        return 1
    number = first
    while number <= last if step > 0 else number >= last:
        until = range(number, number + 100 * step, step)
        block = [item for item in until if (item <= last if step > 0 else item >= last)]
        yield write_text("".join(f"{item}\n" for item in block))
        number += 100 * step
    return 0


def yes(process: Process) -> Run:
    line = f"{' '.join(process.arguments) or 'y'}\n"
    while True:
        yield write_text(line * 64)
        yield Sleep(_YES_SECONDS)
        iterations = yield RepeatedIteration(_YES_SECONDS)
        process.host.elapsed += int(iterations or 0) * _YES_SECONDS


def base_name(process: Process) -> Run:
    arguments = process.arguments or [""]
    name = basename(arguments[0].rstrip("/"))
    suffix = arguments[1] if len(arguments) > 1 else ""
    yield write_text((name.removesuffix(suffix) if name != suffix else name) + "\n")
    return 0


def directory_name(process: Process) -> Run:
    yield write_text((dirname((process.arguments or [""])[0].rstrip("/")) or ".") + "\n")
    return 0


def mount(process: Process) -> Run:
    """List the mounts; mounting is not simulated."""
    options = process.arguments
    if options and (len(options) != 2 or options[0] != "-t"):
        raise UnknownProgram(" ".join(("mount", *options)))
    for line in _MOUNTS:
        if not options or line.split()[4] == options[1]:
            yield write_text(f"{line}\n")
    return 0


def sysctl_path(name: str) -> str:
    """Return the file of a kernel parameter, whose name may have dots or slashes as separators."""
    separator = next((character for character in name if character in "./"), ".")
    return "/proc/sys/" + (name.replace(".", "/") if separator == "." else name)


def sysctl(process: Process) -> Run:
    """Print parameters that the pod sets; other parameters are unknown, and changing them is not simulated."""
    code = 0
    for name in process.arguments:
        if name.startswith("-") or "=" in name:
            raise UnknownProgram(" ".join(("sysctl", *process.arguments)))
        try:
            value = process.host.files.read(sysctl_path(name)).decode().strip()
        except FileError:
            yield process.error(f"error: '{name}' is an unknown key")
            code = 1
        else:
            yield write_text(f"{name} = {value}\n")
    return code


PROGRAMS: Final[Mapping[str, Program]] = {
    **dict.fromkeys(("true", "sync", "stty", "clear"), succeed),
    "false": fail,
    "sleep": sleep,
    "expr": expr,
    "mount": mount,
    "sysctl": sysctl,
    "printenv": printenv,
    "hostname": hostname,
    "pwd": pwd,
    "whoami": whoami,
    "id": user_id,
    "uname": uname,
    "which": program_paths,
    "seq": sequence,
    "yes": yes,
    "basename": base_name,
    "dirname": directory_name,
    "test": test,
    "[": test,
}
