"""`mockube clock [pause|resume|rate N|advance TIME]`: print or change the time of a cluster."""

import argparse
import asyncio
import math
import sys
from typing import Any, Final

from mockube import control_objects
from mockube.apimachinery import conditions
from mockube.apimachinery.durations import format_duration
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.client.resources import Key, Resource
from mockube.client.verbs import Client
from mockube.command_client import open_client
from mockube.component_base.clock import Clock, RealClock
from mockube.component_base.flags import positive, positive_duration
from mockube.component_base.supervision import start
from mockube.control_objects import CLOCK, CLOCKS
from mockube.failure import TimedOut
from mockube.objects.resource_names import ResourceNames

from .named_object import add_object, convert_name_errors, object_target
from .output import table
from .parsing import CommandParser
from .progress import Progress, is_live, print_line
from .target import add_server_flags, convert_errors, server_access

_SPECS: Final[dict[str, Tree]] = {"pause": {"paused": True}, "resume": {"paused": False}}

_ADVANCES: Final = ("advance", "until-idle", "until")
_TERMINAL_SECONDS, _FILE_SECONDS = 1.0, 10.0
"""The seconds between two lines of progress at a terminal, where each replaces the one before, and in a file."""


def add_flags(parser: CommandParser) -> None:
    commands = parser.add_subparsers(
        dest="action", metavar="show|pause|resume|rate|advance|until-idle|until", required=True
    )
    for name, text in (
        ("show", "print the time"),
        ("pause", "let time stand still; it can still be advanced"),
        ("resume", "let time pass again"),
    ):
        add_server_flags(commands.add_parser(name, help=text))
    rate_parser = commands.add_parser("rate", help="let time pass faster or slower")
    rate_parser.add_argument(
        "rate", type=positive, metavar="N", help="seconds of the cluster in a second of the machine"
    )
    add_server_flags(rate_parser)
    advance_parser = commands.add_parser("advance", help="advance the clock, with what is due on the way")
    advance_parser.add_argument(
        "time", type=positive_duration, metavar="TIME", help="such as 90s, 5m, 1h30m or, for 30 days, 720h"
    )
    add_server_flags(advance_parser)
    _add_until(commands)


def _add_until(commands: Any) -> None:
    idle_parser = commands.add_parser("until-idle", help="advance the clock until nobody writes for a minute")
    until_parser = commands.add_parser("until", help="advance the clock until an object has a condition")
    until_parser.add_argument("condition", metavar="CONDITION", help="such as Available or Ready=False")
    add_object(until_parser, "the object, such as deployment/web")
    for each in (idle_parser, until_parser):
        each.add_argument(
            "--within", type=positive_duration, default=3600.0, metavar="TIME", help="how far at most (1h)"
        )
        add_server_flags(each)


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        try:
            print(asyncio.run(_run(options)))
        except KeyboardInterrupt:
            if options.action in _ADVANCES:
                print_line(f"interrupted: the clock goes on from {asyncio.run(_time_of_server(options))}")
            raise
    return 0


async def _time_of_server(options: argparse.Namespace) -> str:
    """Return the time that the clock shows."""
    async with open_client(server_access(options), RealClock()) as client:
        return await _time(client)


async def _time(client: Client) -> str:
    return str((await client.get(CLOCKS, CLOCK))["status"]["time"])


async def _run(options: argparse.Namespace) -> str:
    """Return what to print."""
    async with open_client(server_access(options), RealClock()) as client:
        if options.action == "until":
            return await _advance_until(client, options)
        if options.action in ("advance", "until-idle"):
            return _reached(await _advance(client, advance_of(options)), options)
        if options.action != "show":
            spec = _SPECS.get(options.action) or {"rate": options.rate}
            await client.patch(CLOCKS, CLOCK, {"spec": spec})
        return await _clock_table(client)


def advance_of(options: argparse.Namespace) -> Tree:
    """Return the spec of the ClockAdvance that the arguments describe."""
    if options.action == "advance":
        return {"seconds": options.time}
    return {"seconds": options.within, "until": {"idle": True}}


async def _advance(client: Client, spec: ReadOnlyTree) -> ReadOnlyTree:
    """Advance the clock, print meanwhile how far it is, and return the status of the ClockAdvance."""
    clock, is_terminal = RealClock(), is_live()
    progress = Progress(sys.stderr, live=is_terminal, clock=clock)
    every = _TERMINAL_SECONDS if is_terminal else _FILE_SECONDS
    reporting = start("progress", report(client, spec, progress, clock, every))
    try:
        return await control_objects.advance_clock(client, spec)
    finally:
        reporting.cancel()
        progress.done()


async def report(client: Client, spec: ReadOnlyTree, progress: Progress, clock: Clock, every: float) -> None:
    """Print again and again how far an advance is that begins now, until cancelled."""
    first, began = parse_time(await _time(client)), clock.monotonic()
    while True:
        await clock.sleep(every)
        advanced = (parse_time(await _time(client)) - first).total_seconds()
        progress.step(_progress_line(spec, advanced, clock.monotonic() - began))


def _progress_line(spec: ReadOnlyTree, advanced: float, elapsed: float) -> str:
    """Say how far an advance is, and how long it may still take; nobody knows that of one that waits for something."""
    line = f"advanced {_span(advanced)} of {_span(spec['seconds'])}"
    if "until" in spec:
        return f"{line} at most"
    remaining = elapsed * (spec["seconds"] - advanced) / advanced if advanced > 0 else math.inf
    return f"{line}, about {_span(remaining)} left" if math.isfinite(remaining) else line


def _span(seconds: float) -> str:
    return format_duration(max(round(seconds), 0) * 10**9)


async def _advance_until(client: Client, options: argparse.Namespace) -> str:
    """Advance the clock until an object has a condition; its kind is named as kubectl takes it."""
    with convert_name_errors():
        target = object_target(options)
        found = (await ResourceNames(client).find(target.kind)).resource
    key = Key(target.namespace if found.namespaced else "", target.name)
    answer = await _advance(client, until_spec(options, str(found.group_resource), key))
    try:
        return _reached(answer, options)
    except TimedOut as error:
        problem = await _condition_problem(client, found, key, options.condition)
        raise TimedOut(f"{error}, and {problem}") from error


def until_spec(options: argparse.Namespace, resource: str, key: Key) -> Tree:
    """Return the spec of the ClockAdvance until an object has the condition."""
    type_, _, status = options.condition.partition("=")
    condition = {"resource": resource, "namespace": key.namespace, "name": key.name, "type": type_}
    if status:
        condition["status"] = status
    return {
        "seconds": options.within,
        "until": {"condition": {field: text for field, text in condition.items() if text}},
    }


async def _condition_problem(client: Client, resource: Resource[Any], key: Key, condition: str) -> str:
    """Return what there is in place of the condition."""
    try:
        found = conditions.get(await client.get(resource, key), condition.partition("=")[0])
    except NotFound as error:
        return error.message
    return f"it has no condition {condition}" if found is None else f"{found['type']} is {found['status']}"


def _reached(status: ReadOnlyTree, options: argparse.Namespace) -> str:
    """Return the time after an advance; raise an error if it has ended before what it was to reach."""
    if status.get("isReached", True):
        return str(status["time"])
    raise TimedOut(f"not reached within {options.within:g} seconds of the cluster: it is {status['time']}")


async def _clock_table(client: Client) -> str:
    return table(await control_objects.find_table(client, CLOCKS.plural))
