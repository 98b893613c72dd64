"""Headers of a request as text that can be written again: what is no UTF-8 is replaced, as Go does once it is encoded.

aiohttp gives such bytes as halves of characters, which nothing that writes JSON or a log takes.
"""

from aiohttp import web


def header(request: web.BaseRequest, name: str) -> str:
    """The first header of a name; "" if there is none."""
    text = request.headers.get(name, "")
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
