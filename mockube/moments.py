"""The past of a server: the revisions of moments, and the paths of their API."""

from typing import Final
from urllib.parse import quote

from msgspec import Struct, convert

from mockube.apimachinery.status import NotFound
from mockube.client.verbs import Client
from mockube.failure import Missing

PATH: Final = "/mockube/at/"


class Moment(Struct, frozen=True, kw_only=True):
    moment: str
    revision: int
    time: str | None = None
    """When the revision was made; None if the server does not know it."""


async def find_moment(client: Client, text: str) -> Moment:
    """Return the moment that a text means: a revision, the name of a Mark, a time, a span before now, now, or oldest: the first that can be read."""
    try:
        tree = await client.raw("GET", PATH + quote(text, safe=""))
    except NotFound as error:
        if text in error.message:
            raise
        raise Missing("this server has no past: it is not a server of mockube, or an older one") from error
    return convert(tree, Moment)
