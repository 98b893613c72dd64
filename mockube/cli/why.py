"""`mockube why KIND/NAME`: why an object is in its state, or a request was refused, and what would change it."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from mockube import control_objects
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.printable import printable
from mockube.objects.resource_names import ResourceNames

from .named_object import add_object, convert_name_errors, object_target
from .output import table
from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access

_FORMATS: Final = ("text", "yaml", "json")
_HEAD: Final = ("NODE", "PLUGIN", "REASON", "DETAIL")
_REQUEST_WORDS: Final = (
    "request",
    "requests",
    "Request",
    "requests.control.mockube.dev",
    "request.control.mockube.dev",
)
_TYPES: Final = {"ADDED": "created", "MODIFIED": "changed", "DELETED": "deleted"}
MAX_NODES: Final = 20
"""The rows of the table of nodes; -o yaml has more."""


def add_flags(parser: CommandParser) -> None:
    parser.epilog = "The same by kubectl: create an Explanation of control.mockube.dev/v1alpha1 with spec.object or spec.request."
    add_object(
        parser,
        "the object, such as pod/web; request/NAME or request/AUDIT-ID for a recorded request, request for the newest one that was refused",
    )
    parser.add_argument(
        "-o", "--output", choices=_FORMATS, default="text", metavar="FORMAT", help="text, yaml or json (text)"
    )
    add_server_flags(parser)


def run(options: argparse.Namespace) -> int:
    with convert_errors(), convert_name_errors():
        answer = asyncio.run(_explain(options))
    if options.output == "json":
        print(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())
    elif options.output == "yaml":
        print(_yaml(answer), end="")
    else:
        print("\n".join(lines_of(answer["status"])))
    return 0


def _yaml(answer: ReadOnlyTree) -> str:
    import yaml  # noqa: PLC0415 - only for -o yaml

    return str(yaml.dump(answer, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True))


async def _explain(options: argparse.Namespace) -> ReadOnlyTree:
    word, _, name = options.object.partition("/")
    if word in _REQUEST_WORDS:
        name = name or options.object_name
        async with open_client(server_access(options), RealClock()) as client:
            return await control_objects.explain(client, {"request": {"name": name} if name else {}})
    target = object_target(options)
    async with open_client(server_access(options), RealClock()) as client:
        row = (await ResourceNames(client).find(target.kind)).resource
        key = Key(target.namespace if row.namespaced else "", target.name)
        return await control_objects.explain_object(client, row.api_version, row.kind, key)


def lines_of(status: ReadOnlyTree) -> Iterator[str]:
    """Yield the lines of an explanation: the cause, the evidence, and what would change it."""
    subject = status.get("object") or {}
    name = f"{subject['kind'].lower()}/{subject['name']}: " if subject else ""
    doubt = "" if status["state"] != "Unknown" else "not known: "
    yield printable(f"{name}{doubt}{status['cause']}")
    yield from _section("Evidence", [*map(_evidence, status.get("evidence") or ())])
    yield from _nodes(status)
    yield from _section("Related", [_related(each) for each in status.get("related") or ()])
    yield from _section("Who wrote it", [*_origins(status)])
    yield from _section("What would change it", [*_remedies(status)])
    yield from _section(
        "Not readable by you, so not considered",
        [f"  {printable(each)}" for each in status.get("unreadable") or ()],
    )
    for field, count in (status.get("omitted") or {}).items():
        yield f"{field}: {count} more are left out."


def _section(title: str, lines: Sequence[str]) -> Sequence[str]:
    return ["", f"{title}:", *lines] if lines else ()


def _evidence(evidence: ReadOnlyTree) -> str:
    origin = ", ".join(filter(None, (evidence.get("source"), evidence.get("time"))))
    return printable(f"  {evidence['text']}" + (f"  ({origin})" if origin else ""))


def _related(related: ReadOnlyTree) -> str:
    subject = related["object"]
    return printable(f"  {subject['kind'].lower()}/{subject['name']}: {related['cause']}")


def _origins(status: ReadOnlyTree) -> Iterator[str]:
    """Yield the last writes of the fields that the cause names, and the command that shows all of them."""
    for origin in status.get("origins") or ():
        if "writes" not in origin:
            continue
        subject, field = origin["object"], origin.get("field", "")
        name = f"{subject['kind'].lower()}/{subject['name']}"
        yield printable(f"  {field} of {name}:" if field else f"  {name}:")
        yield from (printable(f"    {_write(each)}") for each in origin["writes"])
        if "command" in origin:
            yield printable(f"    {origin['command']}")


def _write(write: ReadOnlyTree) -> str:
    """Return a write on a line: when, who, and what the field was and became."""
    author = write.get("user") or write.get("source") or "a user who is not recorded"
    details = ", ".join(filter(None, (write.get("verb"), write.get("program"))))
    before, after = write.get("before"), write.get("after")
    if "source" in write and after:
        change = f": {after}"
    elif before or after:
        change = f": {before or '(not set)'} -> {after or '(not set)'}"
    else:
        change = f": {_TYPES[write['type']]}"
    time = f"{write['time'].partition('.')[0].removesuffix('Z')}Z " if write.get("time") else ""
    return f"{time}{author}{f' ({details})' if details else ''}{change}"


def _nodes(status: ReadOnlyTree) -> Iterator[str]:
    nodes = status.get("nodes") or ()
    if not nodes:
        return
    rows = [
        (each["node"], each["plugin"], each["reason"], each.get("detail") or "") for each in nodes[:MAX_NODES]
    ]
    yield ""
    yield table([_HEAD, *rows])
    if len(nodes) > MAX_NODES:
        yield f"{len(nodes) - MAX_NODES} more rows: -o yaml"


def _remedies(status: ReadOnlyTree) -> Iterator[str]:
    for remedy in status.get("remedies") or ():
        yield f"  {printable(remedy['text'])}"
        if "command" in remedy:
            yield f"    {printable(remedy['command'])}"
