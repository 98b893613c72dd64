"""Requests that the server sends to others for itself, such as issuers of tokens and webhooks, and their answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


class CallFailed(Exception):
    """No answer came; the text is Go's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How the other end is known, and by what it knows this server; PEM. No authority: those of the machine."""

    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""
    server_name: str = ""
    insecure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    tls: Tls = Tls()
    proxy: str = ""
    seconds: float = 30.0
    follows_redirects: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    code: int
    reason: str
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes

    @property
    def status_line(self) -> str:
        return f"{self.code} {self.reason}".rstrip()


class Send(Protocol):
    async def __call__(self, request: Outgoing, /) -> Answer:
        """Return the answer, or raise CallFailed."""
