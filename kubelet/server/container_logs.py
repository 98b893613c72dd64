"""The query of a request for the log of a container."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.timestamps import parse_time
from mockube.container_runtime.log_stream import STREAMS, LogOptions

_FLAGS: Final = {"": False, "false": False, "0": False}


class BadLogOptions(Exception):
    """The query of a log request is invalid; the message is the body of the response 400."""


def log_options(query: Mapping[str, str], now: datetime) -> LogOptions:
    """Parse the query of a log request; raise `BadLogOptions` if it is invalid."""
    seconds, since = _number(query, "sinceSeconds"), query.get("sinceTime")
    try:
        start = parse_time(since) if since else None
    except ValueError as error:
        raise BadLogOptions('{"message": "Unable to decode query."}') from error
    if seconds is not None:
        start = now - timedelta(seconds=min(seconds, 10**9))
    tail = query.get("tail", "")
    lines = _number(query, "tailLines") if tail in ("", "all") else int_or_none(tail)
    limit, stream = _number(query, "limitBytes"), query.get("stream") or "All"
    if stream not in STREAMS or (lines or 0) < 0 or (limit is not None and limit < 1):
        raise BadLogOptions('{"message": "Invalid request."}')
    return LogOptions(
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        since=start,
        tail=lines,
        limit=limit,
        streams=STREAMS[stream],
    )


def _number(query: Mapping[str, str], name: str) -> int | None:
    if name not in query:
        return None
    value = int_or_none(query[name])
    if value is None:
        raise BadLogOptions('{"message": "Unable to decode query."}')
    return value


def _flag(query: Mapping[str, str], name: str) -> bool:
    return _FLAGS.get(query.get(name, "").lower(), True)
