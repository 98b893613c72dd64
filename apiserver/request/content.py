"""Serve a document as Go's http.ServeContent does: with conditional and range requests."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from .request import Request
from .response import NOT_CACHED, Response

_RANGE: Final = re.compile(r"\s*+(\d{0,18}+)\s*+-\s*+(\d{0,18}+)\s*+")
_READS: Final = frozenset({"GET", "HEAD"})
_NO_PART: Final = "invalid range: failed to overlap"
MAX_RANGES: Final = 100


class Content(Struct, frozen=True, kw_only=True):
    body: bytes
    content_type: str
    modified: datetime
    etag: str = ""
    """The entity tag, with its quotation marks."""


def serve_content(request: Request, content: Content, headers: Mapping[str, str] = NOT_CACHED) -> Response:
    """Return the document, one range of it, or the response to a condition that is not met."""
    headers = {**headers, "Last-Modified": http_date(content.modified)}
    if content.etag:
        headers["Etag"] = content.etag
    condition = _condition(request, content)
    if condition == HTTPStatus.PRECONDITION_FAILED:
        return Response(condition, (), content.content_type, headers=headers)
    if condition == HTTPStatus.NOT_MODIFIED:
        if content.etag:
            del headers["Last-Modified"]
        return Response(condition, headers=headers)
    headers["Accept-Ranges"] = "bytes"
    size, range_header = len(content.body), request.header("Range")
    ranges = _ranges(range_header, size) if range_header and _accepts_range(request, content) else ()
    if isinstance(ranges, str):
        error_headers = {"Accept-Ranges": "bytes", "X-Content-Type-Options": "nosniff"}
        if ranges == _NO_PART:
            error_headers["Content-Range"] = f"bytes */{size}"
        return Response(416, [f"{ranges}\n".encode()], "text/plain; charset=utf-8", headers=error_headers)
    if len(ranges) != 1:  # RFC 9110 allows a server to ignore multiple ranges
        return Response(200, [content.body], content.content_type, headers=headers)
    start, end = ranges[0]
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return Response(206, [content.body[start:end]], content.content_type, headers=headers)


def http_date(time: datetime) -> str:
    return format_datetime(time.astimezone(UTC).replace(microsecond=0), usegmt=True)


def _condition(request: Request, content: Content) -> int:
    """Return the status for the first condition of the request that is not met; 0 if all are met."""
    if_match, unmodified = request.header("If-Match"), request.header("If-Unmodified-Since")
    if if_match:
        if not _has_tag(if_match, {"*", content.etag}):
            return HTTPStatus.PRECONDITION_FAILED
    elif unmodified and _is_unmodified(unmodified, content) is False:
        return HTTPStatus.PRECONDITION_FAILED
    none_match, modified = request.header("If-None-Match"), request.header("If-Modified-Since")
    if none_match:
        weak = content.etag.removeprefix("W/")
        if _has_tag(none_match, {"*", weak, weak and f"W/{weak}"}):
            read = request.method in _READS
            return HTTPStatus.NOT_MODIFIED if read else HTTPStatus.PRECONDITION_FAILED
        return 0
    is_conditional = bool(modified) and request.method in _READS
    return HTTPStatus.NOT_MODIFIED if is_conditional and _is_unmodified(modified, content) else 0


def _has_tag(header: str, tags: set[str]) -> bool:
    """Return whether a header contains one of some tags. It can have hundreds of thousands of others."""
    return not (tags - {""}).isdisjoint(map(str.strip, header.split(",")))


def _is_unmodified(since: str, content: Content) -> bool | None:
    """Return whether the document is unmodified since a time; None if the time is invalid, so that it is ignored."""
    try:
        time = parsedate_to_datetime(since)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return content.modified.replace(microsecond=0) <= time


def _accepts_range(request: Request, content: Content) -> bool:
    condition = request.header("If-Range")
    if request.method not in _READS or not condition:
        return request.method in _READS
    if condition.startswith(('"', "W/")):
        return bool(content.etag) and condition == content.etag and not condition.startswith("W/")
    return condition == http_date(content.modified)


def _ranges(header: str, size: int) -> Sequence[tuple[int, int]] | str:
    """Return the start and end of each range, or an error message."""
    unit, _, rest = header.partition("=")
    parts = [part for part in rest.split(",") if part.strip()]
    if unit != "bytes" or len(parts) > MAX_RANGES:
        return "invalid range"
    ranges = []
    for part in parts:
        byte_range = _range(part, size)
        if byte_range is None:
            return "invalid range"
        if byte_range[0] < size:
            ranges.append(byte_range)
    return ranges if ranges or not parts else _NO_PART


def _range(text: str, size: int) -> tuple[int, int] | None:
    matched = _RANGE.fullmatch(text)
    if matched is None:
        return None
    first, last = matched.groups()
    if not first:
        return (max(0, size - int(last)), size) if last else None
    start = int(first)
    end = size if not last else min(int(last) + 1, size)
    if last and int(last) < start:
        return None
    return (start, max(end, start))
