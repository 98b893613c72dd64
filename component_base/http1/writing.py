"""Encodes messages."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from mockube.apimachinery.gotext import quote

LAST_CHUNK: Final = b"0\r\n\r\n"


class InvalidHead(ValueError):
    """A head that would be read as another one."""

    def __init__(self, problem: str, go_text: str) -> None:
        super().__init__(problem)
        self.go_text = go_text
        """Go's message."""


def encode_request(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    """Return a request. `headers` include what frames its body, and Host."""
    return _encode(f"{method} {target} HTTP/1.1", headers, body)


def encode_response(
    status: int, headers: Iterable[tuple[str, str]], body: bytes = b"", *, reason: str = ""
) -> bytes:
    """Return a response. `headers` include what frames its body."""
    return _encode(f"HTTP/1.1 {status} {reason or HTTPStatus(status).phrase}", headers, body)


def encode_chunk(data: bytes | memoryview) -> bytes:
    """Return data, which are not empty, as a chunk of a body."""
    return b"".join((b"%x\r\n" % len(data), data, b"\r\n"))


def _encode(first: str, headers: Iterable[tuple[str, str]], body: bytes) -> bytes:
    lines = [first, *[f"{name}: {value}" for name, value in headers], "", ""]
    head = "\r\n".join(lines)
    if not head.count("\r") == head.count("\n") == len(lines) - 1 or "\0" in head:
        raise _invalid_head(first, lines)
    return head.encode("utf-8", "surrogateescape") + body


def _invalid_head(first: str, lines: list[str]) -> InvalidHead:
    wrong = next(line for line in lines if not {"\r", "\n", "\0"}.isdisjoint(line))
    if wrong == first:
        return InvalidHead(f"invalid line {quote(first)}", "net/url: invalid control character in URL")
    name = quote(wrong.partition(": ")[0])
    return InvalidHead(
        f"the header {name} contains a line break", f"net/http: invalid header field value for {name}"
    )
