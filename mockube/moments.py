"""The past of a server: the revisions of moments, the paths of their API, rewinds and changes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson
from msgspec import Struct, convert

from mockube.apimachinery.groups import CONTROL
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.verbs import Client
from mockube.failure import Missing

PATH: Final = "/mockube/at/"
CHANGES: Final = f"/apis/{CONTROL}/v1alpha1/changes"
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


async def list_changes(client: Client, selector: Mapping[str, str] | None = None) -> Sequence[ReadOnlyTree]:
    """Return Changes, the oldest first."""
    text = ",".join(f"{name}={value}" for name, value in (selector or {}).items() if value)
    try:
        tree = await client.raw("GET", f"{CHANGES}?{urlencode({'fieldSelector': text})}" if text else CHANGES)
    except NotFound as error:
        raise Missing(
            "this server has no Changes: it is not a server of mockube, or has --control=off"
        ) from error
    items: Sequence[ReadOnlyTree] = tree["items"]
    return items
