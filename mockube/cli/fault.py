"""`mockube fault list|add|remove`: faults of a running server, as objects of the kind Fault."""

import argparse
import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from mockube import control_objects
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import Tree
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import comma_separated, positive_int, seconds
from mockube.control_objects import FAULTS
from mockube.failure import Missing, UsageError

from .output import table
from .parsing import CommandParser
from .shared_flags import spellings
from .target import add_server_flags, convert_errors, server_access

_CRITERIA: Final = {
    "user": "the user; * matches mockube's own controllers, too",
    "agent": "the beginning of the User-Agent",
    "resource": "the resource as in RBAC: pods, pods/status, deployments.apps",
    "namespace": "the namespace of the object",
    "object": "the name of the object",
    "labels": "a label selector of the object, such as app=web",
    "node": "the node to which the object belongs",
}


def add_flags(parser: CommandParser) -> None:
    parser.epilog = (
        "What no flag sets can be written in YAML: `kubectl explain fault.spec`, `kubectl create -f`."
    )
    commands = parser.add_subparsers(dest="action", metavar="list|add|remove", required=True)
    add_server_flags(commands.add_parser("list", help="list the faults, with their hits"))
    add_parser = commands.add_parser("add", help="add a fault, and print its name")
    add_parser.add_argument("fault", nargs="?", default="", metavar="FAULT", help="its name (generated)")
    add_server_flags(add_parser)
    _add_criteria(add_parser)
    _add_effects(add_parser)
    remove_parser = commands.add_parser("remove", help="remove faults; requests that they delay continue")
    remove_parser.add_argument("faults", nargs="*", metavar="FAULT", help="the names of the faults")
    remove_parser.add_argument("--all", action="store_true", help="remove all faults")
    add_server_flags(remove_parser)


def _add_criteria(parser: Any) -> None:
    for name, text in _CRITERIA.items():
        parser.add_argument(*spellings(name), default="", metavar=name.upper(), help=text)
    parser.add_argument(
        "--verbs", type=comma_separated, default=(), metavar="VERBS", help="verbs, with commas"
    )
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="skip the first N matching requests")
    parser.add_argument("--times", type=positive_int, metavar="N", help="how many requests get it (all)")
    parser.add_argument("--share", type=float, metavar="P", help="the probability of each request (1)")


def _add_effects(parser: Any) -> None:
    parser.add_argument("--status", type=int, metavar="CODE", help="refuse with a status code, such as 409")
    parser.add_argument(
        "--delay", type=seconds, metavar="TIME", help="delay by a time of the cluster, such as 2s"
    )
    parser.add_argument(
        "--cut", choices=("before", "after"), help="cut the connection before or after execution"
    )
    parser.add_argument(
        "--stale",
        type=seconds,
        nargs="?",
        const=0.0,
        metavar="TIME",
        help="read the store as it was so long ago, and let watches lag (as it is now, and watches stand still); needs "
        "--verbs=get,list,watch",
    )
    parser.add_argument(
        "--repeat", action="store_true", help="execute the request twice; needs --verbs of writes"
    )
    parser.add_argument(
        "--steal", action="store_true", help="let another holder take the Lease; needs --resource=leases"
    )
    parser.add_argument(
        "--partition", action="store_true", help="cut a simulated node off; needs --node, and nothing else"
    )
    parser.add_argument(
        "--until-write",
        action="store_true",
        help="let --hold or --drop end when the user of the watch has written to the resource",
    )
    for name, text in (("hold", "hold back"), ("drop", "drop")):
        parser.add_argument(
            f"--{name}",
            type=seconds,
            nargs="?",
            const=0.0,
            metavar="TIME",
            help=f"{text} the events of watches for a time (until the fault is removed)",
        )


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        asyncio.run(_run(options))
    return 0


async def _run(options: argparse.Namespace) -> None:
    async with open_client(server_access(options), RealClock()) as client:
        await _ACTIONS[options.action](client, options)


async def _list(client: Client, _: argparse.Namespace) -> None:
    print(table(await control_objects.find_table(client, FAULTS.plural)))


async def _add(client: Client, options: argparse.Namespace) -> None:
    created = await client.create(FAULTS, control_objects.object_of("Fault", options.fault, spec_of(options)))
    print(control_objects.name_of(created))


async def _remove(client: Client, options: argparse.Namespace) -> None:
    if bool(options.faults) is options.all:
        raise UsageError("fault remove: name faults, or give --all")
    names: Sequence[str] = options.faults
    if options.all:
        names = [control_objects.name_of(item) for item in (await client.list(FAULTS)).items]
    problems = []
    for name in names:
        try:
            await client.delete(FAULTS, Key("", name))
            print(f"{name} removed")
        except NotFound as error:
            problems.append(error.message)
    if problems:
        raise Missing("; ".join(problems))


_ACTIONS: Final[dict[str, Callable[[Client, argparse.Namespace], Any]]] = {
    "list": _list,
    "add": _add,
    "remove": _remove,
}


def spec_of(options: argparse.Namespace) -> Tree:
    """Return the spec of the fault that the flags describe."""
    match = {name: value for name in _CRITERIA if (value := getattr(options, name))}
    if "object" in match:
        match["name"] = match.pop("object")
    spec: Tree = {"match": {**match, "verbs": list(options.verbs)} if options.verbs else match}
    counts = {"skip": options.skip, "times": options.times, "share": options.share}
    spec |= {name: value for name, value in counts.items() if value}
    if options.status is not None:
        spec["refuse"] = {"status": options.status}
    if options.delay is not None:
        spec["delay"] = {"seconds": options.delay}
    if options.cut is not None:
        spec["cut"] = {"when": options.cut}
    spec |= {name: {} for name in ("repeat", "steal", "partition") if getattr(options, name)}
    for name in ("stale", "hold", "drop"):
        span = getattr(options, name)
        if span is not None:
            spec[name] = {"seconds": span} if span else {}
            if options.until_write and name != "stale":
                spec[name]["untilWrite"] = True
    return spec
