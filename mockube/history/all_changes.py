"""All Changes of the history of a server. A list has the newest ones; what came before is read by a watch."""

import re
from collections.abc import AsyncIterator
from typing import Final

import orjson

from mockube.apimachinery.status import ApiError, Expired, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.verbs import Client
from mockube.control_objects import CHANGES
from mockube.failure import Missing
from mockube.moments import PATH

_BEGIN: Final = re.compile(r"begins at revision ([0-9]+)")
_WATCH_SECONDS: Final = 600.0
_NO_CONTROL: Final = "this server has no Changes: it is not a server of mockube, or has --control=off"


async def read_all_changes(client: Client) -> AsyncIterator[ReadOnlyTree]:
    """Yield the specs of the Changes, the oldest first, up to the newest one at the call."""
    try:
        listed = await client.list(CHANGES)
    except NotFound as error:
        raise Missing(_NO_CONTROL) from error
    newest = [item["spec"] for item in listed.items]
    if not newest:
        return
    begin = await _first_revision(client)
    if begin < newest[0]["revision"]:
        async for change in _before(client, begin, newest[0]["revision"]):
            yield change
    for change in newest:
        yield change


async def _before(client: Client, begin: int, until: int) -> AsyncIterator[ReadOnlyTree]:
    query = {"resourceVersion": str(max(1, begin - 1))}  # a watch from 0 begins with the newest ones
    async with client.watch(CHANGES, query, timeout_seconds=_WATCH_SECONDS) as stream:
        rest = b""
        async for chunk in stream.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in filter(None, lines):
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    raise Expired(event["object"].get("message", ""))
                if event["object"]["spec"]["revision"] >= until:
                    return
                yield event["object"]["spec"]


async def _first_revision(client: Client) -> int:
    """Return the first revision of the history, which the refusal of an older one names."""
    try:
        await client.raw("GET", f"{PATH}1")
    except ApiError as error:
        found = _BEGIN.search(error.message)
        return int(found[1]) if found else 1
    return 1
