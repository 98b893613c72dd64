"""aiohttp's server, which besides can tell somebody that his connection is lost.

A request that only waits, such as a watch, would otherwise not hear of it before it has something to send.
"""

from collections.abc import Callable
from typing import Any

from aiohttp import web


class Server(web.Server):
    def __init__(self, handler: Any, **settings: Any) -> None:
        super().__init__(handler, **settings)
        self._callbacks: dict[web.RequestHandler, Callable[[], None]] = {}

    def on_lost(self, request: web.BaseRequest, callback: Callable[[], None]) -> None:
        self._callbacks[request.protocol] = callback

    def forget(self, request: web.BaseRequest) -> None:
        self._callbacks.pop(request.protocol, None)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        callback = self._callbacks.pop(handler, None)
        if callback is not None:
            callback()
