"""`mockube url [svc/NAME|ingress/NAME|gateway/NAME]`: print where this machine serves what is published."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from mockube.apimachinery.hosts import is_loopback
from mockube.client.kubeconfig import Access
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.command_client import open_client
from mockube.component_base.clock import Clock, RealClock
from mockube.component_base.flags import seconds
from mockube.failure import Failure, TimedOut, UsageError
from mockube.published import addresses, reading
from mockube.published.addresses import Published, PublishedUrl
from mockube.published.listening import is_unserved
from mockube.publisher.bindings import ADDRESS

from .output import program_name, table
from .parsing import CommandParser
from .progress import print_line
from .shared_flags import add_namespace, add_output
from .target import add_server_flags, convert_errors, server_access

HEAD: Final = ("NAMESPACE", "NAME", "PORT", "URL", "NOTE")
TIMEOUT: Final = 10.0
_POLL_SECONDS: Final = 0.1


def add_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "object", nargs="?", metavar="OBJECT", help="svc/NAME, ingress/NAME or gateway/NAME; without one, all"
    )
    parser.add_argument("port", nargs="?", metavar="PORT", help="number or name of a port of the Service")
    add_namespace(parser, "namespace of the object (default)", "")
    parser.add_argument("--https", action="store_true", help="print https URLs, whatever the port is called")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT,
        metavar="TIME",
        help=f"wait for a load balancer's address and ready endpoints ({TIMEOUT:g}s)",
    )
    add_server_flags(parser)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    if options.object is None and options.port is not None:
        raise UsageError("a port needs an object, such as svc/web")
    with convert_errors():
        found = asyncio.run(_read(options, server_access(options)))
    if options.output == "json":
        print(msgspec.json.encode([msgspec.to_builtins(each) for each in found]).decode())
    elif options.object is None:
        _print_table(found)
    else:
        _print_urls(found)
    return 0


def _print_urls(found: Sequence[PublishedUrl]) -> None:
    for each in found:
        if each.url:
            print(each.url)
    for each in found:
        if not each.url:
            print_line(f"port {each.port} is not served: {each.note}")
        elif each.note:
            print_line(f"until the name of the host leads here: {each.note}")
        if each.warning:
            print_line(f"{each.url}: {each.warning}")


def _print_table(found: Sequence[PublishedUrl]) -> None:
    if not found:
        print_line(
            "nothing is published: there is no Service of type NodePort or LoadBalancer, no Ingress and no Gateway"
        )
        return
    print(
        table(
            [
                HEAD,
                *(
                    (each.namespace, each.name, each.port, each.url or "-", each.warning or each.note or "-")
                    for each in found
                ),
            ]
        )
    )


async def _read(options: argparse.Namespace, access: Access) -> Sequence[PublishedUrl]:
    clock = RealClock()
    async with open_client(access, clock) as client:
        published = await reading.read_published(client)
        if published is None:
            raise Failure(
                f"this cluster publishes nothing: start it with `{program_name()} up --publish`, "
                "or use `kubectl port-forward`"
            )
        if options.object is None:
            return await reading.read_all(client, published, options.namespace or "")
        return await _wait_for_object(options, client, published, clock, is_here=_is_here(access))


async def _wait_for_object(
    options: argparse.Namespace, client: Client, published: Published, clock: Clock, *, is_here: bool
) -> Sequence[PublishedUrl]:
    """Return the URLs of one object, as soon as something answers there, on this machine if `is_here`."""
    deadline = clock.monotonic() + options.timeout
    while True:
        try:
            found = await _read_object(options, client, published)
            if is_here:
                _require_listener(found, published)
        except reading.NotYet as problem:
            if clock.monotonic() >= deadline:
                raise TimedOut(str(problem)) from None
        else:
            return found
        await clock.sleep(_POLL_SECONDS)
        published = await reading.read_published(client) or published


async def _read_object(
    options: argparse.Namespace, client: Client, published: Published
) -> Sequence[PublishedUrl]:
    kind, name = addresses.parse_object(options.object)
    key = Key(options.namespace or "default", name)
    if kind != addresses.SERVICE:
        return await reading.read_http(client, published, kind, key, uses_tls=options.https)
    return await reading.read_service(client, published, key, port=options.port or "", uses_tls=options.https)


def _is_here(access: Access) -> bool:
    """Return whether the cluster runs on this machine."""
    return is_loopback(urlsplit(access.server).hostname or "")


def _require_listener(found: Sequence[PublishedUrl], published: Published) -> None:
    for each in found:
        if each.url and is_unserved(each.url, published.record[ADDRESS]):
            raise reading.NotYet(
                f"nothing listens at {each.url}: `{program_name()} status` shows whether the controller manager, "
                "which serves it, runs; after a crash it goes on when its Lease has expired"
            )
