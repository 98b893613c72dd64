"""Go's way to write a span of time, "1h30m0s", to and from nanoseconds."""

import re
from decimal import Decimal

from apiserver.wire.protobuf.errors import ProtobufError

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,  # the Greek letter, as well as the micro sign above
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"(\d*\.?\d*)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"[-+]?(?:(?=\.?\d){_PART.pattern})+")


def format_duration(nanoseconds: int) -> str:
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if left == 0:
        return "0s"
    for unit, longer in (("ns", "µs"), ("µs", "ms"), ("ms", "s")):
        if left < _UNITS[longer]:
            return f"{sign}{_decimal(left, _UNITS[unit])}{unit}"
    hours, left = divmod(left, _UNITS["h"])
    minutes, left = divmod(left, _UNITS["m"])
    clock = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{clock}{_decimal(left, _UNITS['s'])}s"


def parse_duration(text: str) -> int:
    if text in ("0", "+0", "-0"):
        return 0
    if not _WHOLE.fullmatch(text):
        raise ProtobufError(f'time: invalid duration "{text}"')
    nanoseconds = sum(int(Decimal(number) * _UNITS[unit]) for number, unit in _PART.findall(text))
    return -nanoseconds if text.startswith("-") else nanoseconds


def _decimal(amount: int, unit: int) -> str:
    return f"{Decimal(amount) / unit:f}"
