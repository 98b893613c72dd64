"""Programs that put load on a machine: stress, stress-ng, vish/stress, whose options have one dash, and memory-eater of robusta's demos."""

import re
from collections.abc import Mapping
from math import inf
from typing import Final, NamedTuple

from mockube.apimachinery import quantity
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.quantity import QuantityError
from mockube.container_runtime.simulated.shell.process import (
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Sleep,
    fill_memory,
    write_text,
)

_SHORT: Final = {"c": "cpu", "m": "vm", "i": "io", "d": "hdd", "t": "timeout", "q": "quiet", "v": "verbose"}
_WITH_VALUE: Final = frozenset(
    [
        "cpu",
        "vm",
        "io",
        "hdd",
        "timeout",
        "vm-bytes",
        "vm-hang",
        "vm-stride",
        "hdd-bytes",
        "backoff",
        "cpu-load",
    ]
)
_ALONE: Final = frozenset(
    ["quiet", "verbose", "vm-keep", "hdd-noclean", "dry-run", "metrics-brief", "metrics"]
)
_VM_BYTES: Final = 256 << 20
"""The memory of a worker without `--vm-bytes`."""
_SIZE: Final = re.compile(r"(\d{1,12})([bkmg]?)", re.IGNORECASE)
_SHARE: Final = re.compile(r"(\d{1,3})%")
"""A share of the memory of the node."""
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TIME: Final = re.compile(r"(\d{1,9})([smhdy]?)", re.IGNORECASE)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 31_557_600}
_RUN_TIME_BYTES: Final = 4 << 20
"""What the run-time of memory-eater's language has itself."""
_MAX_STEPS: Final = 1000
_SHORTEST_PAUSE: Final = 0.01
_VISH_OPTIONS: Final = {
    "cpus": "0",
    "mem-total": "0",
    "mem-alloc-size": "4Ki",
    "mem-alloc-sleep": "1ms",
    "logtostderr": "",
}


class _Load(NamedTuple):
    """What workers use, and for how long."""

    cores: float
    memory: float
    seconds: float


def stress(process: Process) -> Run:
    """Run hogs, as the program of polinux/stress; one of vish/stress has options such as `-cpus`."""
    names = {argument.lstrip("-").partition("=")[0] for argument in process.arguments}
    if names & {"cpus", "mem-total"}:
        return (yield from _vish_stress(process))
    options = _options(process)
    if not {"cpu", "vm", "io", "hdd"} & options.keys():
        yield write_text(
            "`stress' imposes certain types of compute stress on your system\n\nUsage: stress [OPTION [ARG]] ...\n"
        )
        return 0
    load = _load_of(process, options)
    counts = ", ".join(f"{_number(process, options, name)} {name}" for name in ("cpu", "io", "vm", "hdd"))
    if "quiet" not in options:
        yield write_text(f"stress: info: [{process.pid or 1}] dispatching hogs: {counts}\n")
    yield from _work(process, load)
    if "quiet" not in options:
        text = f"successful run completed in {load.seconds:.0f}s"
        yield write_text(f"stress: info: [{process.pid or 1}] {text}\n")
    return 0


def stress_ng(process: Process) -> Run:
    options = _options(process)
    stressors = [name for name in ("cpu", "io", "vm", "hdd") if name in options]
    if not stressors:
        yield process.error("error: No stress workers specified")
        return 1
    load = _load_of(process, options)
    if load.seconds == inf:
        load = load._replace(seconds=86_400.0)
    prefix = f"stress-ng: info:  [{process.pid or 1}]"
    counts = ", ".join(f"{_number(process, options, name)} {name}" for name in stressors)
    yield write_text(f"{prefix} dispatching hogs: {counts}\n")
    yield from _work(process, load)
    yield write_text(f"{prefix} successful run completed in {load.seconds:.2f} secs\n")
    return 0


def _options(process: Process) -> dict[str, str]:
    """Parse `--name value`, `--name=value`, `-n value` and `-nvalue`; raise `ProgramUsageError`."""
    options: dict[str, str] = {}
    arguments = list(process.arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
        else:
            name, value = _SHORT.get(argument[1:2], ""), argument[2:]
            equals = value
        if name in _WITH_VALUE and not equals and arguments:
            value = arguments.pop(0)
        if not argument.startswith("-") or name not in _WITH_VALUE | _ALONE:
            raise ProgramUsageError(f"FAIL: [{process.pid or 1}] (244) unrecognized option: {argument}")
        options[name] = value
    return options


def _load_of(process: Process, options: Mapping[str, str]) -> _Load:
    workers = _number(process, options, "vm")
    vm_bytes = options.get("vm-bytes", str(_VM_BYTES))
    is_share = _SHARE.fullmatch(vm_bytes) is not None  # of all workers together
    memory = float((min(workers, 1) if is_share else workers) * _size(process, vm_bytes))
    keeps = "vm-hang" in options or "vm-keep" in options
    busy = float(_number(process, options, "cpu")) + (0.0 if keeps else workers)
    match = _TIME.fullmatch(options.get("timeout", ""))
    if "timeout" in options and match is None:
        raise ProgramUsageError(f"FAIL: [{process.pid or 1}] (299) not a number: {options['timeout']}")
    seconds = int(match[1]) * _SECONDS[match[2].lower()] if match else 0
    return _Load(busy, memory, float(seconds) or inf)


def _number(process: Process, options: Mapping[str, str], name: str) -> int:
    text = options.get(name, "0")
    if not text.isascii() or not text.isdecimal() or len(text) > 4:
        raise ProgramUsageError(f"FAIL: [{process.pid or 1}] (299) not a number: {text}")
    return int(text)


def _size(process: Process, text: str) -> int:
    if share := _SHARE.fullmatch(text):
        return process.host.memory_bytes * int(share[1]) // 100
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ProgramUsageError(f"FAIL: [{process.pid or 1}] (291) unrecognized suffix: {text}")
    return int(match[1]) * _UNITS[match[2].lower()]


def _work(process: Process, load: _Load) -> Run:
    if load.memory:
        yield from fill_memory(process, load.memory)
    yield Sleep(load.seconds, cores=load.cores)
    return 0


def _vish_stress(process: Process) -> Run:
    """Allocate memory in pieces with pauses, and then keep cores busy; it never ends."""
    options = dict(_VISH_OPTIONS)
    arguments = list(process.arguments)
    while arguments:
        name, equals, value = arguments.pop(0).lstrip("-").partition("=")
        if name not in options:
            raise ProgramUsageError(f"flag provided but not defined: -{name}", 2)
        options[name] = value if equals or name == "logtostderr" or not arguments else arguments.pop(0)
    try:
        total, piece = (
            float(quantity.parse(options[name]).number) for name in ("mem-total", "mem-alloc-size")
        )
        pause = parse_duration(options["mem-alloc-sleep"]) / 10**9
        cores = float(int(options["cpus"]))
    except (QuantityError, DurationError, ValueError) as error:
        raise ProgramUsageError(f"invalid value: {error}", 2) from error
    texts = f'"{options["mem-total"]}" memory, in "{options["mem-alloc-size"]}" chunks'
    yield _vish_line(
        process, 26, f"Allocating {texts}, with a {options['mem-alloc-sleep']} sleep between allocations"
    )
    for _ in range(int(cores)):
        yield _vish_line(process, 39, "Spawning a thread to consume CPU")
    if total:
        yield from _allocate(process, total, total / piece * pause if piece else 0.0, cores)
    yield _vish_line(process, 29, f'Allocated "{options["mem-total"]}" memory')
    yield Sleep(inf, cores)
    return 0


def _allocate(process: Process, total: float, seconds: float, cores: float) -> Run:
    """Allocate memory in ten parts over a time."""
    parts = 10
    for _ in range(parts):
        yield Sleep(seconds / parts, cores)
        yield from fill_memory(process, total / parts)
    return 0


def _vish_line(process: Process, line: int, text: str) -> Output:
    now = process.host.now_running(is_shown=True)
    return write_text(f"I{now:%m%d %H:%M:%S.%f} {1:>7} main.go:{line}] {text}\n")


def memory_eater(process: Process) -> Run:
    """Fill memory: `memory-eater 80Mi 0 100Mi 10 1` begins with 80Mi, waits 0 s, and adds 10Mi each second up to 100Mi."""
    try:
        first, last = (float(quantity.parse(process.arguments[index]).number) for index in (0, 2))
        delay, step, pause = (float(process.arguments[index]) for index in (1, 3, 4))
    except (IndexError, QuantityError, ValueError) as error:
        text = "memory-eater INITIAL SECONDS FINAL STEP-IN-MI SECONDS-OF-STEP"
        raise ProgramUsageError(f"usage: {text}", 2) from error
    yield from fill_memory(process, _RUN_TIME_BYTES + first)
    yield Sleep(max(delay, 0.0))
    piece = step * (1 << 20)
    for _ in range(min(int((last - first) / piece), _MAX_STEPS) if piece > 0 else 0):
        yield Sleep(max(pause, _SHORTEST_PAUSE))
        yield from fill_memory(process, piece)
    yield Sleep(inf)
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {
    "stress": stress,
    "stress-ng": stress_ng,
    "memory-eater": memory_eater,
}
