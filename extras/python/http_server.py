"""`python -m http.server`: on which port it listens, and what it answers there."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from mockube.container_runtime.images.table import PortBehavior
from mockube.container_runtime.simulated.servers.server_programs import port_number
from mockube.container_runtime.simulated.shell.process import Run, Sleep, write_text

MODULES: Final = ("http.server", "SimpleHTTPServer")
_DEFAULT_PORT: Final = 8000
_MISSING: Final = (
    '<!DOCTYPE HTML>\n<html lang="en">\n    <head>\n        <meta charset="utf-8">\n        <title>Error response</title>\n'
    "    </head>\n    <body>\n        <h1>Error response</h1>\n        <p>Error code: 404</p>\n        <p>Message: File not found.</p>\n"
    "        <p>Error code explanation: 404 - Nothing matches the given URI.</p>\n    </body>\n</html>\n"
)


def ports_of(arguments: Sequence[str], folder: str) -> Mapping[int, PortBehavior | None] | None:
    """Return what the server does on its port; None if its arguments name none."""
    root, text = folder, ""
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, separator, value = word.partition("=")
        if name in ("-d", "--directory", "-b", "--bind", "-p", "--protocol"):
            value = value if separator else (rest.pop(0) if rest else "")
            root = value if name in ("-d", "--directory") else root
        elif not word.startswith("-"):
            text = word
    number = port_number(text) if text else _DEFAULT_PORT
    behavior = PortBehavior(
        root=root,
        missing=_MISSING,
        server="SimpleHTTP/0.6 Python/3",
        lists_folders=True,
        access_log="python",
    )
    return None if number is None else {number: behavior}


def serve(arguments: Sequence[str], *, is_unbuffered: bool) -> Run:
    """Run the server until it is stopped; its output is a file's, and kept back, unless it is unbuffered."""
    if is_unbuffered:
        port = next((word for word in arguments if word.isdecimal()), str(_DEFAULT_PORT))
        yield write_text(f"Serving HTTP on 0.0.0.0 port {port} (http://0.0.0.0:{port}/) ...\n")
    yield Sleep(inf)
    return 0
