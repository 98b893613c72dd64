"""Logs as klog writes them: `I1231 23:59:59.000000   42 serve.py:30] words`, or one JSON object a line."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, TextIO

import orjson

from apimachinery.flags import Flag, choice, natural


@dataclass(frozen=True, slots=True, kw_only=True)
class Logging:
    """Logging"""

    v: Annotated[
        int,
        Flag(
            "how much to log: 4 and more also what is for those who look for a fault (0)", natural, short="v"
        ),
    ] = 0
    logging_format: Annotated[
        str, Flag("text, as klog writes it, or json (text)", choice("text", "json"))
    ] = "text"


DEBUG_FROM = 4
"""The verbosity from which on what is for those who look for a fault is logged, too."""
_LETTERS: Mapping[int, str] = {
    logging.DEBUG: "I",
    logging.INFO: "I",
    logging.WARNING: "W",
    logging.ERROR: "E",
    logging.CRITICAL: "F",
}


def attach(root: logging.Logger, settings: Logging, stream: TextIO | None = None) -> None:
    """Send all that a logger is told to a stream, or to stderr."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_FORMATTERS[settings.logging_format]())
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if settings.v >= DEBUG_FROM else logging.INFO)


class KlogFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        letter = _LETTERS.get(record.levelno, "I")
        where = f"{record.filename}:{record.lineno}"
        head = f"{letter}{moment:%m%d %H:%M:%S.%f} {record.process:7d} {where}]"
        return f"{head} {_words(self, record)}"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": _words(self, record),
        }
        if record.levelno < logging.WARNING:
            line["v"] = DEBUG_FROM if record.levelno < logging.INFO else 0
        return orjson.dumps(line).decode()


def _words(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    words = record.getMessage()
    if record.exc_info:
        words += "\n" + formatter.formatException(record.exc_info)
    return words


_FORMATTERS: Mapping[str, type[logging.Formatter]] = {"text": KlogFormatter, "json": JsonFormatter}
