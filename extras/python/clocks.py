"""The modules of simulated Python scripts for time and chance: time, datetime, random and uuid."""

from calendar import timegm
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from itertools import accumulate
from math import inf
from random import Random  # noqa: TID251 - with the seed of the pod, or the one of the script
from typing import Any, Final
from uuid import UUID

from . import costs, limits
from .errors import error
from .interpreter import PythonInterpreter
from .operations import is_native
from .values import (
    Builtin,
    BulkText,
    Code,
    GeneratorObject,
    Iterator,
    NativeObject,
    NativeType,
    Value,
    type_name,
)

_MAX_SLEEP: Final = 1e12
_MAX_PARSED: Final = 300
"""Characters of a time, and of its format, which becomes a regular expression."""
_MAX_PARAMETER: Final = 1e12
"""A parameter of a random distribution; from infinity, its computation does not end."""
_CHOSEN_AT_ONCE: Final = 5_000
Keywords = dict[str, Value]


def plain(name: str, function: Callable[..., Any]) -> Builtin:
    """Return a built-in function of numbers, texts and containers."""

    def call(machine: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Any:
        arguments = [
            machine.text_of_bulk(value) if isinstance(value, BulkText) else value for value in arguments
        ]
        for argument in (*arguments, *keywords.values()):
            if isinstance(argument, (Iterator, GeneratorObject)):
                machine.refuse_feature(f"Python's {name}() of an iterator")
            if not is_native(argument):
                raise error("TypeError", f"{name}() does not take an argument of this type")
            machine.charge(_price(argument))
        return function(*arguments, **keywords)

    return Builtin(name, call)


def _price(argument: Value) -> float:
    """Return what a function does with an argument at most: it computes with a number, and visits the elements of a container."""
    if isinstance(argument, int):
        return 2.0 * costs.product(argument, argument) + costs.division(
            argument, 1 << argument.bit_length() // 2
        )
    if isinstance(argument, (list, tuple)):
        if len(argument) > costs.MAX_NODES:
            return inf
        return sum(
            costs.CALLED + (_price(item) if not isinstance(item, (list, tuple)) else inf) for item in argument
        )
    return float(costs.CALLED * costs.size(argument))


def pod_random(name: str) -> Random:
    """Return the source of a pod's random numbers, the same in each run of the simulation."""
    return Random(name)  # noqa: S311 - not for secrets


def time_module(machine: PythonInterpreter) -> dict[str, Value]:
    host = machine.process.host

    def sleep(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        (seconds,) = arguments
        if not isinstance(seconds, (int, float)):
            raise error("TypeError", f"'{type_name(seconds)}' object cannot be interpreted as an integer")
        if seconds < 0:
            raise error("ValueError", "sleep length must be non-negative")
        yield machine.sleep(min(float(seconds), _MAX_SLEEP))
        return None

    def now() -> float:
        return host.now_running().timestamp()

    def elapsed() -> float:
        host.time_reads += 1
        return 1000.0 + machine.process.processes.time

    def moment_of(seconds: float | None) -> datetime:
        return datetime.fromtimestamp(now() if seconds is None else seconds, UTC)

    def parts_of(seconds: float | None = None) -> tuple[int, ...]:
        return tuple(moment_of(seconds).timetuple())

    def formatted(text: str, parts: tuple[int, ...] | None = None) -> str:
        moment = moment_of(None) if parts is None else moment_of(timegm(parts))
        return moment.strftime(text)

    functions: dict[str, Callable[..., Any]] = {
        "time": now, "time_ns": lambda: int(now() * 10**9), "monotonic": elapsed, "perf_counter": elapsed,
        "process_time": lambda: machine.process.processes.busy_seconds, "strftime": formatted,
        "gmtime": parts_of,
        "localtime": parts_of,
        "ctime": lambda seconds=None: moment_of(seconds).ctime(),
        "monotonic_ns": lambda: int(elapsed() * 10**9), "perf_counter_ns": lambda: int(elapsed() * 10**9),
    }  # fmt: skip
    members: dict[str, Value] = {name: plain(name, function) for name, function in functions.items()}
    return members | {"sleep": Builtin("sleep", sleep), "timezone": 0, "tzname": ("UTC", "UTC")}


def datetime_module(machine: PythonInterpreter) -> dict[str, Value]:
    host = machine.process.host

    def now(zone: Any = None, *, tz: Any = None) -> datetime:
        moment = host.now_running().astimezone(zone or tz or UTC)
        return moment if zone or tz else moment.replace(tzinfo=None)

    def utc_now() -> datetime:
        return now()

    def from_timestamp(seconds: float, zone: Any = None, *, tz: Any = None) -> datetime:
        moment = datetime.fromtimestamp(seconds, zone or tz or UTC)
        return moment if zone or tz else moment.replace(tzinfo=None)

    def parsed(text: str, form: str) -> datetime:
        if max(costs.size(text), costs.size(form)) > _MAX_PARSED:
            machine.refuse_feature("Python's strptime() of so long a text")
        return datetime.strptime(text, form)  # noqa: DTZ007 - as the script wants it

    methods: dict[str, Callable[..., Any]] = {
        "now": now, "utcnow": utc_now, "today": utc_now, "fromtimestamp": from_timestamp,
        "utcfromtimestamp": from_timestamp, "strptime": parsed, "fromisoformat": datetime.fromisoformat,
        "combine": datetime.combine,
    }  # fmt: skip
    moments = _native_type("datetime.datetime", datetime, methods)
    moments.members |= {"min": datetime.min, "max": datetime.max}  # noqa: DTZ901 - as Python has them
    days = _native_type(
        "datetime.date", date, {"today": lambda: now().date(), "fromisoformat": date.fromisoformat}
    )
    zones = _native_type("datetime.timezone", timezone, {})
    zones.members["utc"] = UTC
    members: dict[str, Value] = {
        "datetime": moments, "date": days, "timezone": zones, "time": _native_type("datetime.time", time, {}),
        "timedelta": _native_type("datetime.timedelta", timedelta, {}), "UTC": UTC,
    }  # fmt: skip
    for cls in members.values():
        if isinstance(cls, NativeType):
            machine.register_type(cls)
    return members


def _native_type(name: str, host: type, methods: dict[str, Callable[..., Any]]) -> NativeType:
    members = {method: plain(method, function) for method, function in methods.items()}
    return NativeType(name, host, plain(name, host).call, members)


def random_module(machine: PythonInterpreter) -> dict[str, Value]:
    def make(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> NativeObject:
        _check_seed(machine, arguments)
        return NativeObject(random_functions(machine, Random(*arguments)))  # noqa: S311 - as the script wants it

    return random_functions(machine, machine.random) | {
        "Random": Builtin("Random", make),
        "SystemRandom": Builtin(
            "SystemRandom", lambda *_: NativeObject(random_functions(machine, machine.random))
        ),
    }


def random_functions(machine: PythonInterpreter, source: Random) -> dict[str, Value]:  # noqa: C901 - one function for each of the module
    def call(name: str) -> Builtin:
        functions: dict[str, Callable[..., Any]] = {
            "random": source.random, "randint": source.randint, "uniform": source.uniform, "randrange": source.randrange,
            "gauss": source.gauss, "normalvariate": source.normalvariate, "expovariate": source.expovariate,
            "betavariate": source.betavariate, "triangular": source.triangular, "getrandbits": source.getrandbits,
            "choice": source.choice, "seed": source.seed, "lognormvariate": source.lognormvariate,
        }  # fmt: skip
        function = functions[name]

        def run(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Any:
            machine.own_changes += 1
            values = [*arguments, *keywords.values()]
            if name == "seed":
                _check_seed(machine, values)
                if not arguments:
                    return None
            elif name == "choice":
                if isinstance(arguments[0], BulkText):
                    arguments = [machine.text_of_bulk(arguments[0])]
            elif not all(
                value is None or (isinstance(value, (int, float)) and abs(value) < _MAX_PARAMETER)
                for value in values
            ):
                machine.refuse_feature(f"Python's random.{name}() of these values")
            if name == "getrandbits" and arguments[0] > limits.MAX_BITS:
                machine.refuse_feature("a number of this size in Python")
            return function(*arguments, **keywords)

        return Builtin(name, run)

    def choices(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
        machine.own_changes += 1
        options: dict[str, Any] = dict(zip(("weights",), arguments[1:], strict=False)) | keywords
        count, weights = options.pop("k", 1), options.pop("weights", None)
        for value in (arguments[0], weights, options.get("cum_weights")):
            machine.charge(costs.CALLED * costs.size(value))
        if weights is not None:
            options["cum_weights"] = list(accumulate(weights))
        yield machine.check_size(count)
        chosen: list[Value] = []
        for start in range(0, count, _CHOSEN_AT_ONCE):
            part = min(_CHOSEN_AT_ONCE, count - start)
            machine.charge(4 * costs.CALLED * part)
            chosen += source.choices(arguments[0], k=part, **options)
            yield machine.pause()
        return chosen

    def sample(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Any:
        machine.own_changes += 1
        for value in (*arguments, *keywords.values()):
            machine.charge(4 * costs.CALLED * (value if isinstance(value, int) else costs.size(value)))
        return source.sample(*arguments, **keywords)

    def shuffle(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> None:
        machine.own_changes += 1
        machine.charge(4 * costs.CALLED * costs.size(arguments[0]))
        source.shuffle(arguments[0])

    names = "random randint uniform randrange gauss normalvariate expovariate betavariate triangular getrandbits choice seed lognormvariate"
    return {name: call(name) for name in names.split()} | {
        "choices": Builtin("choices", choices), "sample": Builtin("sample", sample), "shuffle": Builtin("shuffle", shuffle),
    }  # fmt: skip


def _check_seed(machine: PythonInterpreter, values: list[Value]) -> None:
    for value in values:
        if value is not None and not isinstance(value, (int, float, str, bytes, bytearray)):
            raise error(
                "TypeError", "The only supported seed types are: None, int, float, str, bytes, and bytearray."
            )
        machine.charge(costs.CALLED * costs.size(value))


def uuid_module(machine: PythonInterpreter) -> dict[str, Value]:
    def identifier(*_: Any) -> NativeObject:
        machine.own_changes += 1
        return uuid_object(UUID(int=machine.random.getrandbits(128), version=4))

    return {"uuid4": Builtin("uuid4", identifier), "uuid1": Builtin("uuid1", identifier)}


def uuid_object(value: UUID) -> NativeObject:
    result = NativeObject(
        {"hex": value.hex, "int": value.int, "bytes": value.bytes, "version": value.version}
    )
    result.type_name = "UUID"
    result.members |= {
        "__str__": plain("__str__", lambda: str(value)),
        "__repr__": plain("__repr__", lambda: repr(value)),
    }
    return result
