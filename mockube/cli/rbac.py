"""`mockube rbac --user USER`: print the smallest roles for what a user did, or what its roles allow that it never did."""

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import non_negative_int
from mockube.component_base.printable import printable
from mockube.control_objects import ROLE_ADVICES, post
from mockube.failure import Missing

from .output import table
from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access
from .yaml_text import dump_documents

_UNUSED: Final = ("BINDING", "NAME", "VERBS", "OF", "OBJECTS", "USED")


def add_flags(parser: CommandParser) -> None:
    parser.epilog = "The output is YAML for `kubectl apply -f -`. The requests are those that the server has recorded: see `mockube requests`."
    add_server_flags(parser)
    parser.add_argument(
        "--user",
        required=True,
        metavar="USER",
        help="the name of the user; that of a service account is system:serviceaccount:NAMESPACE:NAME",
    )
    parser.add_argument(
        "--group", action="append", metavar="GROUP", help="a group of the user (those of its last request)"
    )
    parser.add_argument(
        "--since",
        metavar="MOMENT",
        help="from when on: a mark, a revision, a time, or a span such as -5m (all recorded requests)",
    )
    parser.add_argument("--role-name", metavar="NAME", help="the name of the roles (that of the user)")
    parser.add_argument(
        "--max-names",
        type=non_negative_int,
        default=1,
        metavar="N",
        help="how many objects a verb may be limited to by their names; with more it is allowed on all (1)",
    )
    parser.add_argument(
        "--include-refused",
        action="store_true",
        help="also allow what was refused to the user for lack of rights",
    )
    parser.add_argument(
        "--unused", action="store_true", help="print what the roles of the user allow that it never did"
    )


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        advice = asyncio.run(_advise(options))
    if options.unused:
        print(table([_UNUSED, *_unused_rows(advice)]))
        for text in advice.get("unusedOmitted") or ():
            print(f"Omitted: {text}", file=sys.stderr)
        return 0
    if not advice["requests"]:
        raise Missing(f"the server has no requests of {options.user}{_since(options)}")
    for line in _comments(advice):
        print(f"# {printable(line)}")
    print(dump_documents(advice.get("objects") or ()), end="")
    return 0


async def _advise(options: argparse.Namespace) -> Any:
    spec = {
        "user": options.user,
        "maxNames": options.max_names,
        "includeRefused": options.include_refused,
        "groups": options.group,
        "since": options.since,
        "roleName": options.role_name,
    }
    async with open_client(server_access(options), RealClock()) as client:
        return await post(
            client, ROLE_ADVICES, {name: value for name, value in spec.items() if value is not None}
        )


def _since(options: argparse.Namespace) -> str:
    return f" since {options.since}" if options.since else ""


def _comments(advice: ReadOnlyTree) -> Iterator[str]:
    since = f" since {advice['since']}" if advice.get("since") else ""
    yield f"{advice['requests']} requests{since}"
    if not advice["isComplete"]:
        yield "Other requests are not recorded any more, or for objects that you may not list: --control-requests of the server sets how many it has"
    if not advice.get("objects"):
        yield "Every authenticated user may do all of this: no role is needed"
    for rule in advice.get("refused") or ():
        place = f" in the namespace {rule['namespace']}" if "namespace" in rule else ""
        yield f"refused{place}: {','.join(rule['verbs'])} {_objects(rule)}"


def _unused_rows(advice: ReadOnlyTree) -> Iterator[tuple[str, ...]]:
    for each in advice.get("unused") or ():
        kind, _, name = each["binding"].partition(" ")
        for rule in each.get("rules") or ():
            yield kind, name.strip('"'), ",".join(rule["verbs"]), _objects(rule), _names(rule), "never"
        for wildcard in each.get("wildcards") or ():
            rule, used = wildcard["rule"], wildcard["used"]
            uses = "; ".join(f"{','.join(part['verbs'])} {_objects(part)}" for part in used)
            yield kind, name.strip('"'), ",".join(rule["verbs"]), _objects(rule), _names(rule), f"only {uses}"


def _objects(rule: ReadOnlyTree) -> str:
    if "nonResourceURLs" in rule:
        return ",".join(rule["nonResourceURLs"])
    (group,) = rule["apiGroups"]
    return ",".join(f"{resource}.{group}" if group else resource for resource in rule["resources"])


def _names(rule: ReadOnlyTree) -> str:
    return ",".join(rule.get("resourceNames") or ("all",))
