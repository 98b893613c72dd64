"""The objects of the group `control.mockube.dev` for commands and for Python: requests of a client, with nothing of their own."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.groups import CONTROL
from mockube.apimachinery.status import NO_RESOURCE_MESSAGE, NotFound, from_tree
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.client.cache.reflector import split_lines
from mockube.client.resources import Key, Resource, row
from mockube.client.verbs import Client
from mockube.failure import Missing

API_VERSION: Final = f"{CONTROL}/v1alpha1"
MARKS: Final = row(API_VERSION, "marks", "Mark", namespaced=False)
FAULTS: Final = row(API_VERSION, "faults", "Fault", namespaced=False)
REQUESTS: Final = row(API_VERSION, "requests", "Request", namespaced=False)
CHANGES: Final = row(API_VERSION, "changes", "Change", namespaced=False)
CONTROLLERS: Final = row(API_VERSION, "controllers", "Controller", namespaced=False)
CLOCKS: Final = row(API_VERSION, "clocks", "Clock", namespaced=False)
REWINDS: Final = row(API_VERSION, "rewinds", "Rewind", namespaced=False)
FORKS: Final = row(API_VERSION, "forks", "Fork", namespaced=False)
SNAPSHOTS: Final = row(API_VERSION, "snapshots", "Snapshot", namespaced=False)
ROLE_ADVICES: Final = row(API_VERSION, "roleadvices", "RoleAdvice", namespaced=False)
EXPLANATIONS: Final = row(API_VERSION, "explanations", "Explanation", namespaced=False)
PAGE_TOKENS: Final = row(API_VERSION, "pagetokens", "PageToken", namespaced=False)
CLOCK: Final = Key("", "cluster")
FORK_SECONDS: Final = 90.0
"""How long the start of a fork may take."""
REWIND_SECONDS: Final = 300.0
"""How long a rewind may take, as the restore of a snapshot."""
EXPLANATION_SECONDS: Final = 60.0
LONG_VERBS: Final = frozenset({"watch", "connect"})
"""Verbs of requests that last as long as a client likes: they have no latency."""
TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
OFF: Final = "the server has no control: it is not a server of mockube, or was started with --control=off"
WATCH_SECONDS: Final = 86_400.0
_EXPIRED: Final = 410


class NoControl(Missing):
    """The server has none of the kinds of control."""

    def __init__(self) -> None:
        super().__init__(OFF)


@contextmanager
def needs_control() -> Iterator[None]:
    """Raise NoControl where the answer of the server is that the kind does not exist, and not that an object does not."""
    try:
        yield
    except NotFound as error:
        if not error.message.startswith(NO_RESOURCE_MESSAGE):
            raise
        raise NoControl from error


def object_of(kind: str, name: str, spec: ReadOnlyTree) -> Tree:
    """Return an object to create; without a name, the server generates one."""
    metadata = {"name": name} if name else {"generateName": f"{kind.lower()}-"}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def selector(criteria: Mapping[str, object]) -> str:
    """Return the field selector of criteria; those that are empty are left out."""
    return ",".join(
        f"{name}={_escape(str(value))}" for name, value in criteria.items() if value not in (None, "")
    )


def _escape(value: str) -> str:
    return "".join(f"\\{character}" if character in "\\,=" else character for character in value)


async def find_table(client: Client, plural: str, field_selector: str = "") -> Sequence[Sequence[str]]:
    """Return the objects of a kind as the server prints them, with a row of names first."""
    query = f"?{urlencode({'fieldSelector': field_selector})}" if field_selector else ""
    with needs_control():
        tree = await client.raw("GET", f"/apis/{API_VERSION}/{plural}{query}", accept=TABLE)
    return [*table_rows(tree)]


def table_rows(tree: ReadOnlyTree) -> Sequence[Sequence[str]]:
    """Return the rows of a Table of the server, without the columns that only -o wide shows."""
    columns = [
        (index, column["name"].upper())
        for index, column in enumerate(tree["columnDefinitions"] or ())
        if not column.get("priority")
    ]
    cells = [[_text(row["cells"][index]) for index, _ in columns] for row in tree["rows"] or ()]
    return [[name for _, name in columns], *cells]


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    return "" if cell is None else str(cell)


async def watch_requests(client: Client, field_selector: str) -> AsyncIterator[Tree]:
    """Yield the requests that arrive from now on, each when it ends."""
    listed = await client.list(REQUESTS, field_selector="code=0")
    async for tree in watch_after(client, REQUESTS, listed.resource_version, field_selector):
        yield tree


async def watch_after(
    client: Client,
    kind: Resource[Any],
    version: str,
    field_selector: str = "",
    seconds: float = WATCH_SECONDS,
) -> AsyncGenerator[Tree, None]:
    """Yield the objects of a kind that are added or change after a version; raise the ApiError that the watch gets."""
    query: dict[str, Any] = {"fieldSelector": field_selector} if field_selector else {}
    query |= {
        "resourceVersion": version,
        "timeoutSeconds": int(seconds),
    }  # the server's own limit is half an hour
    async with client.watch(kind, query, timeout_seconds=seconds) as stream:
        async for lines in split_lines(stream.chunks()):
            for line in filter(None, lines):
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    raise from_tree(event["object"], event["object"].get("code") or _EXPIRED)
                if event["type"] in ("ADDED", "MODIFIED"):
                    yield event["object"]


async def advance_clock(client: Client, spec: ReadOnlyTree) -> ReadOnlyTree:
    """Advance the clock of the cluster, and return the status of the ClockAdvance."""
    advance = {"apiVersion": API_VERSION, "kind": "ClockAdvance", "spec": spec}
    with needs_control():
        answer = await client.with_timeout(WATCH_SECONDS).create(
            CLOCKS, advance, key=CLOCK, subresource="advance"
        )
    status: ReadOnlyTree = answer["status"]
    return status


async def rewind(client: Client, moment: str | None, *, snapshot: str | None = None) -> Any:
    """Make the objects of a moment, or of a Snapshot, the newest ones, and return the status of the Rewind."""
    spec = {"to": moment} if snapshot is None else {"snapshot": snapshot}
    return await post(client.with_timeout(REWIND_SECONDS), REWINDS, spec)


async def post(client: Client, kind: Resource[Any], spec: ReadOnlyTree) -> Any:
    """Create an object that is posted as a review is, and return its status."""
    with needs_control():
        return (await _create(client, kind, spec))["status"]


async def _create(client: Client, kind: Resource[Any], spec: ReadOnlyTree) -> Tree:
    posted = {"apiVersion": API_VERSION, "kind": kind.kind, "metadata": {}, "spec": spec}
    return dict(await client.create(kind, posted))


async def explain_object(client: Client, api_version: str, kind: str, key: Key) -> Tree:
    """Return the Explanation of an object."""
    named = {"apiVersion": api_version, "kind": kind, "namespace": key.namespace, "name": key.name}
    return await explain(client, {"object": {field: value for field, value in named.items() if value}})


async def explain(client: Client, spec: ReadOnlyTree) -> Tree:
    """Return the Explanation of what a spec names."""
    try:
        with needs_control():
            return await _create(client.with_timeout(EXPLANATION_SECONDS), EXPLANATIONS, spec)
    except NotFound as error:
        raise Missing(error.message) from error


async def page_path(client: Client) -> str:
    """Return the path of the page, with a new one-time token."""
    return str((await post(client, PAGE_TOKENS, {}))["path"])


async def list_changes(client: Client, criteria: Mapping[str, object]) -> Sequence[ReadOnlyTree]:
    """Return the Changes that meet criteria, the oldest first."""
    with needs_control():
        return (await client.list(CHANGES, field_selector=selector(criteria))).items


def name_of(tree: ReadOnlyTree) -> str:
    return meta.name(tree)
