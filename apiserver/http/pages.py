"""What is served besides objects: health, version, discovery, and an index of it all."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from aiohttp import web

Page: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Pages: TypeAlias = Mapping[str, Page]
"""By exact path, without a slash at its end."""
