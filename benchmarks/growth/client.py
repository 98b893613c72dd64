"""A client with one connection. It costs little itself, because it shares the machine with what is measured."""

import http.client
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

import orjson

TLS = ssl._create_unverified_context()  # noqa: SLF001 - the servers are on this machine
TIMEOUT = 300.0
MAX_IDLE = 20.0
"""Seconds after which a connection is not used again, because the server may close it."""


class RequestFailed(Exception):
    pass


class Client:
    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._host, self._port = parts.hostname, parts.port
        self._connection: http.client.HTTPSConnection | None = None
        self._last_used = 0.0

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, context=TLS, timeout=TIMEOUT)

    def headers(self, media_type: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": media_type}

    def send(self, method: str, path: str, body: bytes | None = None, media_type: str = "json") -> bytes:
        """Return the body of the response, whose status must be a success."""
        if self._connection is None or time.perf_counter() - self._last_used > MAX_IDLE:
            self._connection = self.connect()
        self._connection.request(method, path, body, self.headers(f"application/{media_type}"))
        response = self._connection.getresponse()
        data = response.read()
        self._last_used = time.perf_counter()
        if response.status >= 300:
            raise RequestFailed(f"{method} {path}: {response.status} {data[:500].decode()}")
        return data

    def call(self, method: str, path: str, body: object = None, media_type: str = "json") -> Any:
        data = None if body is None else orjson.dumps(body)
        return orjson.loads(self.send(method, path, data, media_type))

    def is_ready(self) -> bool:
        try:
            return self.send("GET", "/readyz") == b"ok"
        except (OSError, http.client.HTTPException, RequestFailed):
            self._connection = None
            return False
