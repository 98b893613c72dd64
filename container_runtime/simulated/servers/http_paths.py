"""How an HTTP server answers a path: by a route of its data, or by a file. Pure."""

import re
from collections.abc import Callable, Iterable
from posixpath import normpath
from typing import Final
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from mockube.apimachinery.gotext import int_or_none
from mockube.container_runtime.images.table import HttpRoute, PortBehavior

PLACEHOLDER: Final = re.compile(r"\$\(([a-z]+)\)")


def route_of(behavior: PortBehavior, path: str, elapsed: float) -> HttpRoute | None:
    """Return the route that answers a request for a path in a container that runs for some seconds; None if none does."""
    path = path.partition("?")[0]
    return next(
        (route for route in behavior.routes if route.since <= elapsed and _matches(route, path)), None
    )


def _matches(route: HttpRoute, path: str) -> bool:
    if path == route.path:
        return True
    return not route.exact and path.startswith(route.path.rstrip("/") + "/")


def location_of(route: HttpRoute, path: str) -> str:
    """Return the target of a route's redirect for a request."""
    if "$(" not in route.location:
        return route.location
    query = parse_qs(urlsplit(path).query)
    return PLACEHOLDER.sub(lambda match: next(iter(query.get(match[1], ())), ""), route.location)


_HTML: Final = re.compile(
    r"[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[ >]",
    re.IGNORECASE,
)
_XML: Final = re.compile(r"[\t\n\f\r ]*<\?xml", re.IGNORECASE)


def sniffed_type(text: str) -> str:
    """Return the content type that a server in Go finds for a text of which it has none (net/http/sniff.go)."""
    kind = "html" if _HTML.match(text) else "xml" if _XML.match(text) else "plain"
    return f"text/{kind}; charset=utf-8"


def status_of(route: HttpRoute, path: str) -> int:
    """Return the status of a route's response, which a parameter of the request's query may name."""
    values = parse_qs(urlsplit(path).query).get(route.status_parameter) if route.status_parameter else None
    status = int_or_none(values[0]) if values else None
    return route.status if status is None else status


def is_of_image(behavior: PortBehavior, path: str, known: Iterable[str]) -> bool:
    """Return whether a path that does not exist may be one of the image, whose files are not all known: its server serves all of them.

    `known` are the files of the image that are known, and the mounts of volumes.
    """
    return behavior.serves_image and not any(f"{path}/".startswith(f"{each.rstrip('/')}/") for each in known)


class ServedFile(Struct, frozen=True, kw_only=True):
    """What a server of files answers to a path."""

    status: int = 200
    path: str = ""
    """The file, or the folder that it lists."""
    location: str = ""


KindOfFile = Callable[[str], str]
"""Returns what a path is: file, folder, or "" if it does not exist."""


def served_file(behavior: PortBehavior, path: str, kind: KindOfFile) -> ServedFile:
    """Return what a server of files sends for the path of a request: a folder has an index.html, or is forbidden."""
    inner = normpath("/" + path.partition("?")[0].lstrip("/"))
    file = normpath(f"{behavior.root.rstrip('/')}{inner}")
    if not path.partition("?")[0].endswith("/"):
        if kind(file) == "folder":
            return ServedFile(status=301, path=file, location=f"{inner}/")
        return ServedFile(path=file) if kind(file) else ServedFile(status=404, path=file)
    index = f"{file.rstrip('/')}/index.html"
    if kind(index) == "file":
        return ServedFile(path=index)
    if kind(file) != "folder":
        return ServedFile(status=404, path=index)
    return ServedFile(path=file) if behavior.lists_folders else ServedFile(status=403, path=file)
