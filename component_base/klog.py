"""Log formats of klog: `I1231 23:59:59.000000   42 serve.py:30] message`, or one JSON object per line."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, TextIO

import orjson
from msgspec import Struct

from .flags import Flag, choice, non_negative_int
from .printable import printable


class Logging(Struct, frozen=True, kw_only=True):
    """Logging"""

    v: Annotated[
        int,
        Flag(
            "log level; 4: debug messages (0; bare -v: 2)",
            non_negative_int,
            metavar="LEVEL",
            short="v",
            value_if_bare="2",
            topic="Start",
        ),
    ] = 0
    logging_format: Annotated[
        str, Flag("format of the log: text, as klog, or json (text)", choice("text", "json"))
    ] = "text"


DEBUG_VERBOSITY = 4
"""The lowest verbosity at which debug messages are logged."""
_LETTERS: Mapping[int, str] = {
    logging.DEBUG: "I",
    logging.INFO: "I",
    logging.WARNING: "W",
    logging.ERROR: "E",
    logging.CRITICAL: "F",
}


def attach(root: logging.Logger, settings: Logging, stream: TextIO | None = None) -> None:
    """Replace the handlers of a logger by one that writes to a stream, by default to stderr."""
    root.handlers[:] = [new_handler(settings, stream)]
    root.setLevel(logging.DEBUG if settings.v >= DEBUG_VERBOSITY else logging.INFO)


def new_handler(settings: Logging, stream: TextIO | None = None) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_FORMATTERS[settings.logging_format]())
    return handler


class KlogFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        letter = _LETTERS.get(record.levelno, "I")
        source_line = f"{record.filename}:{record.lineno}"
        head = f"{letter}{time:%m%d %H:%M:%S.%f} {record.process:7d} {source_line}]"
        return f"{head} {_message_text(self, record)}"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": _message_text(self, record),
        }
        if record.levelno < logging.WARNING:
            line["v"] = DEBUG_VERBOSITY if record.levelno < logging.INFO else 0
        return orjson.dumps(line).decode()


def _message_text(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    message = printable(record.getMessage())
    if record.exc_info:
        lines = formatter.formatException(record.exc_info).splitlines()
        message = "\n".join([message, *map(printable, lines)])
    return message


_FORMATTERS: Mapping[str, type[logging.Formatter]] = {"text": KlogFormatter, "json": JsonFormatter}
