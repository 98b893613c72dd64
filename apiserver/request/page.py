"""A page: what the server answers at one path that belongs to no resource, such as /healthz, /metrics and /mockube/clock."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from .request import Request
from .response import Response

Page: TypeAlias = Callable[[Request], Awaitable[Response]]
Pages: TypeAlias = Mapping[str, Page]
"""Pages by exact path, without a trailing slash."""
