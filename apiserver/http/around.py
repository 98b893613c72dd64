"""What may be put around every request whose sender is known: to watch what is asked, or to answer otherwise."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aiohttp import web

from apiserver.http.asked import Asked

Proceed: TypeAlias = Callable[[Asked], Awaitable[web.StreamResponse]]
"""What the server makes of a request. It raises nothing: errors are answers by then."""

Around: TypeAlias = Callable[[Asked, Proceed], Awaitable[web.StreamResponse]]
"""Given a request and how to proceed with it; must raise nothing either."""
