"""What is shown to the server beside a certificate: nothing, a token, or a token in a file that is replaced."""

from pathlib import Path
from typing import Final, Protocol

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.client.wire import Unreachable

REREAD_SECONDS: Final = 60.0


class Credential(Protocol):
    async def token(self) -> str:
        """The current bearer token; empty where there is none."""

    def forget(self, token: str) -> bool:
        """Drop a token that the server rejected; returns whether there may be another one."""


class FixedToken:
    """A constant token, or none."""

    def __init__(self, token: str = "") -> None:
        self._token = token

    async def token(self) -> str:
        return self._token

    def forget(self, _: str) -> bool:
        return False


class FileToken:
    """A token in a file that another program renews."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._read = ""
        self._until = 0.0

    async def token(self) -> str:
        now = self._clock.monotonic()
        if not self._read or now >= self._until:
            self._read = self._read_file()
            self._until = now + REREAD_SECONDS
        return self._read

    def forget(self, token: str) -> bool:
        """The file may hold a newer one than what was read from it."""
        if token != self._read:
            return True
        self._until = 0.0
        return self._read_file() != token

    def _read_file(self) -> str:
        try:
            return self._path.read_text().strip()
        except OSError as error:
            raise Unreachable(f"no token: {error}") from error
