"""Moments of the past of a server: their revisions, and the paths of their API."""

from typing import Any, Final
from urllib.parse import quote

import orjson
from msgspec import Struct, convert

from mockube.apimachinery.groups import CONTROL
from mockube.apimachinery.status import NotFound
from mockube.client.verbs import Client
from mockube.failure import Missing

PATH: Final = "/mockube/at/"
REWIND_SECONDS: Final = 300.0
"""How long a rewind may take, as the restore of a snapshot."""


class Moment(Struct, frozen=True, kw_only=True):
    moment: str
    revision: int
    time: str | None = None
    """When the revision was made; None if the server does not know it."""


async def find_moment(client: Client, text: str) -> Moment:
    """Return the moment that a text means: a revision, the name of a Mark, a time, a span before now, or now."""
    try:
        tree = await client.raw("GET", PATH + quote(text, safe=""))
    except NotFound as error:
        if text in error.message:
            raise
        raise Missing("this server has no past: it is not a server of mockube, or an older one") from error
    return convert(tree, Moment)


async def rewind(client: Client, moment: str) -> Any:
    """Make the objects of a moment the newest ones, and return the status of the Rewind."""
    body = orjson.dumps({"apiVersion": f"{CONTROL}/v1alpha1", "kind": "Rewind", "spec": {"to": moment}})
    tree = await client.with_timeout(REWIND_SECONDS).raw(
        "POST", f"/apis/{CONTROL}/v1alpha1/rewinds", body=body
    )
    return tree["status"]
