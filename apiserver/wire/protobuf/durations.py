"""Go's way to write a span of time, "1h30m0s", to and from nanoseconds, as errors of protobuf."""

from mockube.apimachinery import durations
from mockube.apimachinery.durations import format_duration
from mockube.apiserver.wire.protobuf.errors import ProtobufError

__all__ = ["format_duration", "parse_duration"]


def parse_duration(text: str) -> int:
    try:
        return durations.parse_duration(text)
    except durations.DurationError as error:
        raise ProtobufError(str(error)) from error
