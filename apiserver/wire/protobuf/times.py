"""Points in time, as JSON writes them and as seconds since 1970. Go's zero time is None in both directions."""

from datetime import UTC, datetime, timedelta

from mockube.apimachinery import durations
from mockube.apimachinery.durations import format_duration
from mockube.apiserver.wire.protobuf.errors import ProtobufError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME = -62_135_596_800
"""The first second of the year 1."""

_TO_SECONDS = len("2006-01-02T15:04:05")
_MICROSECONDS = 1_000_000


def format_time(seconds: int) -> str | None:
    return None if seconds == _ZERO_TIME else f"{_clock(seconds)}Z"


def format_micro_time(seconds: int, microseconds: int) -> str | None:
    ahead, microseconds = divmod(microseconds, _MICROSECONDS)
    seconds += ahead
    if seconds == _ZERO_TIME and microseconds == 0:
        return None
    return f"{_clock(seconds)}.{microseconds:06}Z"


def _clock(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()[:_TO_SECONDS]
    except (OSError, OverflowError, ValueError) as error:
        raise ProtobufError(f"no such time: {seconds} seconds since 1970") from error


def parse_time(text: object) -> tuple[int, int] | None:
    """Seconds and microseconds."""
    if type(text) is not str:
        raise ProtobufError(f"cannot write {type(text).__name__} as a time")
    try:
        since: timedelta = datetime.fromisoformat(text) - _EPOCH
    except (OverflowError, TypeError, ValueError) as error:
        raise ProtobufError(f"cannot write {text!r} as a time") from error
    seconds = since.days * 86_400 + since.seconds
    return None if seconds == _ZERO_TIME else (seconds, since.microseconds)


__all__ = ["format_duration", "parse_duration"]


def parse_duration(text: str) -> int:
    try:
        return durations.parse_duration(text)
    except durations.DurationError as error:
        raise ProtobufError(str(error)) from error
