"""The dependencies of authorizers that call other servers: a sender and an observer."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apiserver.outgoing import Send


class Observer(Protocol):
    """Counts, under upstream's names."""

    def record_evaluation(self, name: str, result: str, seconds: float) -> None: ...

    def failed_open(self, name: str, result: str) -> None: ...

    def record_match(self, name: str, seconds: float, *, failed: bool, excluded: bool) -> None: ...

    def record_config(self, data: bytes) -> None: ...

    def record_reload(self, *, success: bool) -> None: ...


class RemoteAuthorization(Struct, frozen=True):
    """The observer is created when it is needed."""

    send: Send
    observer: Callable[[], Observer]
    clock: Clock
