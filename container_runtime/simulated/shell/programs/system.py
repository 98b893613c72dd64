"""Programs that print or change what the system is like: date, env, id, uname, mount and the like."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.conditions import test
from mockube.container_runtime.simulated.shell.invoking import CommandNotFound, find_program, program_path
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.proc_files import mount_lines
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Process,
    Program,
    ProgramUsageError,
    RepeatedIteration,
    Run,
    Sleep,
    UnknownProgram,
    count_work,
    write_text,
)
from mockube.container_runtime.simulated.shell.streams import is_read_by_program
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .durations import seconds_of
from .expressions import expr
from .inputs import read_all, split_lines

_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,10})?")
_DIVISORS_PER_COMMAND: Final = 1000
_SPLIT_AT_ONCE: Final = 1 << 14
_YES_SECONDS: Final = 0.001
_YES_LINES: Final = 64
_YES_BLOCK: Final = 64 * 1024
"""The bytes that `yes` writes at once for a program that reads them."""


def succeed(_: Process) -> Run:
    return 0
    yield


def terminal(process: Process) -> Run:
    parse_options(process.arguments, "s", long={"silent": "s", "quiet": "s"})
    yield write_text("/dev/pts/0\n" if process.host.has_terminal else "not a tty\n")
    return int(not process.host.has_terminal)


def factor(process: Process) -> Run:
    words = list(process.arguments)
    if not words:
        lines = yield from split_lines((yield from read_all(process, [])))
        for line in lines:
            yield from count_work(_SPLIT_AT_ONCE + len(line), _SPLIT_AT_ONCE)
            words += line.split()
    for argument in words:
        if not argument.isdecimal() or len(argument) > limits.MAX_DIGITS:
            raise ProgramUsageError(f"invalid number '{argument[: limits.MAX_ARGUMENT]}'")
        number, divisor, factors = int(argument), 2, list[int]()
        while divisor * divisor <= number:
            if divisor % _DIVISORS_PER_COMMAND == 1:
                yield CommandStart()
            while number % divisor == 0:
                factors.append(divisor)
                number //= divisor
            divisor += 1 if divisor == 2 else 2
        factors += [number] if number > 1 else []
        yield write_text(f"{int(argument)}: {' '.join(map(str, factors))}".rstrip() + "\n")
    return 0


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
        process.host.ask_variable("")
        yield write_text("".join(f"{name}={value}\n" for name, value in process.environment.items()))
        return 0
    for name in process.arguments:
        if name not in process.environment:
            process.host.ask_variable(name)
    values = [process.environment[name] for name in process.arguments if name in process.environment]
    yield write_text("".join(f"{value}\n" for value in values))
    return int(len(values) < len(process.arguments))


def hostname(process: Process) -> Run:
    options = parse_options(process.arguments, "sifdIF:")
    host = process.host
    if options.arguments or "F" in options:
        if not host.files.rights.user.has("SYS_ADMIN") or "F" in options:
            raise ProgramUsageError("sethostname: Operation not permitted")
        host.hostname = options.arguments[0][:64]
        return 0
    if "d" in options:
        text = _canonical_name(process).partition(".")[2]
    elif "f" in options:
        text = _canonical_name(process)
    elif "s" in options:
        text = host.name.partition(".")[0]
    else:
        text = f"{host.address} " if "I" in options else host.address if "i" in options else host.name
    if text:
        yield write_text(f"{text}\n")
    return 0


def domain_name(process: Process) -> Run:
    parse_options(process.arguments, "")
    if domain := _canonical_name(process).partition(".")[2]:
        yield write_text(f"{domain}\n")
    return 0


def _canonical_name(process: Process) -> str:
    """Return the first name of the host in /etc/hosts, as the C library resolves its name."""
    with suppress(FileError):
        for line in process.host.files.read("/etc/hosts").decode("utf-8", "replace").splitlines():
            _, *names = line.partition("#")[0].split() or [""]
            if process.host.name in names:
                return names[0]
    return process.host.name


def pwd(process: Process) -> Run:
    options = parse_options(process.arguments, "LP")
    directory = process.directory
    yield write_text(f"{process.host.files.resolve(directory) if 'P' in options else directory}\n")
    return 0


def whoami(process: Process) -> Run:
    name = process.host.user_names.get(process.host.user)
    if name is None:
        yield process.error(f"unknown uid {process.host.user}")
        return 1
    yield write_text(f"{name}\n")
    return 0


def user_id(process: Process) -> Run:
    options = parse_options(
        process.arguments, "ugGnr", long={"user": "u", "group": "g", "groups": "G", "name": "n", "real": "r"}
    )
    host = process.host
    user, group, all_groups = host.user, host.group, host.groups
    if options.arguments:
        user = group = _number_of_user(process, options.arguments[0])
        all_groups = [group]
    if options.has_any("ugG"):
        numbers = all_groups if "G" in options else [user if "u" in options else group]
        names = host.user_names if "u" in options else host.group_names
        unknown = [number for number in numbers if number not in names]
        if "n" in options and unknown:
            raise ProgramUsageError(f"unknown ID {unknown[0]}")
        texts = [names[number] if "n" in options else str(number) for number in numbers]
        yield write_text(f"{' '.join(texts)}\n")
        return 0
    groups = ",".join(_id_text(number, host.group_names) for number in all_groups)
    user_text, group_text = _id_text(user, host.user_names), _id_text(group, host.group_names)
    yield write_text(f"uid={user_text} gid={group_text} groups={groups}\n")
    return 0


def _number_of_user(process: Process, name: str) -> int:
    """Return the number of an account, which is that of its group, too; raise `ProgramUsageError`."""
    for number, account in process.host.user_names.items():
        if name in (account, str(number)):
            return number
    is_gnu = process.host.has_gnu_programs
    raise ProgramUsageError(f"\u2018{name}\u2019: no such user" if is_gnu else f"unknown user {name}")


def _id_text(number: int, names: Mapping[int, str]) -> str:
    return f"{number}({names[number]})" if number in names else f"{number}"


def uname(process: Process) -> Run:
    options = parse_options(
        process.arguments,
        "amnrspvoi",
        long={"all": "a", "machine": "m", "kernel-name": "s", "kernel-release": "r", "nodename": "n"},
    )
    parts = {
        "s": "Linux",
        "n": process.host.name,
        "r": "mockube",
        "v": "simulated",
        "m": "x86_64",
        "p": "x86_64",
        "o": "GNU/Linux",
    }
    selected = [letter for letter in parts if letter in options or ("a" in options and letter != "p")] or [
        "s"
    ]
    yield write_text(" ".join(parts[letter] for letter in selected) + "\n")
    return 0


def program_paths(process: Process) -> Run:
    options = parse_options(process.arguments, "a")
    code = 0
    for name in options.arguments:
        candidate = process.child([name])
        try:
            find_program(candidate)
            yield write_text(f"{program_path(candidate)}\n")
        except (CommandNotFound, UnknownProgram):
            code = 1
    return code


def sequence(process: Process) -> Run:
    arguments = list(process.arguments)
    options = ProgramOptions()
    while arguments and arguments[0].startswith("-") and not _NUMBER.fullmatch(arguments[0]):
        option = (
            parse_options([arguments.pop(0)], "w", long={"equal-width": "w"})
            if arguments[0] == "-w"
            else None
        )
        if option is None:
            parsed = parse_options(arguments[:2], "ws:f:")
            options.values |= parsed.values
            arguments = [*parsed.arguments, *arguments[2:]]
            break
        options.values |= option.values
    if not 1 <= len(arguments) <= 3 or not all(_NUMBER.fullmatch(argument) for argument in arguments):
        raise ProgramUsageError(f"invalid number '{(arguments or [''])[-1]}'")
    places = max(len(argument.partition(".")[2]) for argument in arguments)
    numbers = [round(float(argument) * 10**places) for argument in arguments]
    first, step = (
        (numbers[0] if len(numbers) > 1 else 10**places),
        numbers[1] if len(numbers) == 3 else 10**places,
    )
    if not step:
        raise ProgramUsageError("zero increment")
    width = max(len(argument) for argument in arguments) if "w" in options else 0
    yield from _write_sequence(
        range(first, numbers[-1] + (1 if step > 0 else -1), step), places, width, options.get("s", "\n")
    )
    return 0


def _write_sequence(numbers: range, places: int, width: int, separator: str) -> Run:
    for start in range(0, len(numbers), 100):
        yield CommandStart()
        texts = [
            f"{number / 10**places:0{width}.{places}f}" if places else f"{number:0{width}}"
            for number in numbers[start : start + 100]
        ]
        is_last = start + 100 >= len(numbers)
        yield write_text(separator.join(texts) + ("\n" if is_last else separator))
    return 0


def yes(process: Process) -> Run:
    line = f"{' '.join(process.arguments) or 'y'}\n"
    text = line * _YES_LINES
    host = process.host
    while True:
        changes = host.changes
        yield write_text(text)
        yield Sleep(_YES_SECONDS, cores=1.0)
        # A program reads the lines; it may end at any time.
        if host.changes != changes or is_read_by_program(process):
            text = line * max(_YES_BLOCK // len(line), _YES_LINES)
            continue
        iterations = yield RepeatedIteration(_YES_SECONDS, 1.0)
        host.elapsed += int(iterations or 0) * _YES_SECONDS


def groups(process: Process) -> Run:
    names = (process.host.group_names.get(number, f"{number}") for number in process.host.groups)
    yield write_text(f"{' '.join(names)}\n")
    return 0


def machine(_: Process) -> Run:
    yield write_text("x86_64\n")
    return 0


def microseconds(process: Process) -> Run:
    """Sleep for as many microseconds, as `usleep`."""
    text = process.arguments[0] if process.arguments else ""
    if not (text.isascii() and text.isdecimal() and len(text) <= limits.MAX_DIGITS):
        raise ProgramUsageError(f"invalid number '{text}'")
    yield Sleep(int(text) / 1_000_000)
    return 0


def mount(process: Process) -> Run:
    """List the mounts; mounting is not simulated."""
    options = process.arguments
    if options and (len(options) != 2 or options[0] != "-t"):
        raise UnknownProgram(" ".join(("mount", *options)))
    for source, path, kind, flags in mount_lines(process.host):
        if not options or kind == options[1]:
            yield write_text(f"{source} on {path} type {kind} ({flags})\n")
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
    "dnsdomainname": domain_name,
    "hostname": hostname,
    "pwd": pwd,
    "whoami": whoami,
    "groups": groups,
    "arch": machine,
    "usleep": microseconds,
    "id": user_id,
    "uname": uname,
    "which": program_paths,
    "seq": sequence,
    "yes": yes,
    "tty": terminal,
    "factor": factor,
    "test": test,
    "[": test,
}
