"""Calls of the network by a program, and the resolver of its C library: `/etc/hosts`, and the search list of `/etc/resolv.conf`."""

from collections.abc import Callable, Generator, Iterator
from math import inf
from typing import Final

from msgspec import Struct

from mockube.apimachinery.hosts import is_address
from mockube.container_runtime.simulated.network.calls import (
    WAITING,
    Call,
    Lookup,
    Reply,
    TakeReply,
    decode_reply,
    encode_call,
)
from mockube.container_runtime.simulated.network.open_sockets import close_socket
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    NetworkCall,
    Process,
    Sleep,
    UnknownProgram,
    WaitUntil,
)
from mockube.container_runtime.simulated.shell.process import (
    Steps as Wait,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

Steps = Generator[Effect, bytes | None, "Reply"]
QUERY_SECONDS: Final = 5.0
ATTEMPTS: Final = 2
ROUND_TRIP: Final = 0.001
"""The seconds that a use of the network takes, so that a loop of requests takes time."""
CONNECT_SECONDS: Final = 130.0
"""The time after which the kernel gives up a connection that nobody answers."""
UNREACHABLE_SECONDS: Final = 3.0


class Resolution(Struct, frozen=True, kw_only=True):
    """The result of a look-up by the resolver."""

    addresses: tuple[str, ...] = ()
    name: str = ""
    """The name that has the addresses."""
    has_timed_out: bool = False
    last_query: str = ""
    """The last name that was looked up."""


def call(process: Process, request: Call) -> Steps:
    """Use the network; raise `UnknownProgram` if it is not simulated here, or not what the call needs."""
    yield Sleep(ROUND_TRIP)
    reply = yield from _call_once(process, request)
    if reply.outcome == WAITING and reply.socket:
        return (yield from _wait_for_reply(process, reply.socket))
    return reply


def _wait_for_reply(process: Process, socket: int) -> Steps:
    """Wait for the reply of another program, which may run in the same container."""
    try:
        while True:
            wakes = process.processes.wakes
            reply = yield from _call_once(process, TakeReply(socket=socket))
            if reply.outcome != WAITING:
                return reply
            yield from wait_for_news(process, wakes)
    finally:
        close_socket(socket)


def wait_for_news(
    process: Process, wakes: int, seconds: float = inf, has_input: Callable[[], bool] = lambda: False
) -> Wait:
    """Wait until something happens on a socket, or there is input; `wakes` is the number of wakes before the last look."""
    yield WaitUntil(lambda: process.processes.wakes != wakes or has_input(), seconds)


def _call_once(process: Process, request: Call) -> Steps:
    data = yield NetworkCall(encode_call(request))
    if not data:
        raise UnknownProgram(process.name)
    reply = decode_reply(data)
    if reply.problem:
        raise UnknownProgram(f"{process.name}: {reply.problem}")
    return reply


def resolve(
    process: Process, name: str, *, limit: float = QUERY_SECONDS * ATTEMPTS
) -> Generator[Effect, bytes | None, Resolution]:
    """Look a name up as getaddrinfo does, IPv4 addresses first; `limit` is the time after which the program gives up."""
    if is_address(name.strip("[]")):
        return Resolution(addresses=(name.strip("[]"),), name=name)
    addresses = [address for address, names in hosts(process) if name.lower() in names]
    addresses = [address for address in addresses if ":" not in address] or addresses
    if addresses:
        return Resolution(addresses=(addresses[0],), name=name)
    settings = resolver_settings(process)
    query, is_outside = name, False
    for query in settings.queries(name):
        reply, records = yield from _look_up_addresses(process, settings.server, query)
        if not reply.is_open and reply.outcome != "outside":
            yield Sleep(min(limit, QUERY_SECONDS * ATTEMPTS))
            return Resolution(has_timed_out=True, last_query=query)
        if reply.code:
            return Resolution(has_timed_out=True, last_query=query)
        if records:
            addresses = [value for _, _, value in records]
            return Resolution(addresses=tuple(addresses), name=records[0][0], last_query=query)
        is_outside |= reply.outcome == "outside"
    if is_outside:
        raise UnknownProgram(f"{process.name} of {name}, which is outside of the cluster,")
    return Resolution(last_query=query)


def _look_up_addresses(
    process: Process, server: str, name: str
) -> Generator[Effect, bytes | None, tuple[Reply, list[tuple[str, str, str]]]]:
    """Return the last reply about a name, and its records of addresses; those of IPv6 if there are none of IPv4."""
    reply = yield from call(process, Lookup(server=server, name=name))
    records = [record for record in reply.records if record[1] == "A"]
    if not records and reply.is_open and reply.exists and not reply.code:
        reply = yield from call(process, Lookup(server=server, name=name, record_type="AAAA"))
        records = [record for record in reply.records if record[1] == "AAAA"]
    return reply, records


def hosts(process: Process) -> Iterator[tuple[str, list[str]]]:
    return hosts_in(process.host.files)


def hosts_in(files: FileSystem) -> Iterator[tuple[str, list[str]]]:
    """Yield the addresses in /etc/hosts with their names."""
    for line in _lines(files, "/etc/hosts"):
        fields = line.partition("#")[0].split()
        if len(fields) > 1:
            yield fields[0], [name.lower() for name in fields[1:]]


class ResolverSettings(Struct, frozen=True, kw_only=True):
    server: str
    search: tuple[str, ...] = ()
    dots: int = 1

    def queries(self, name: str) -> list[str]:
        """Return the absolute names to look up, in order."""
        if name.endswith("."):
            return [name[:-1]]
        searched = [f"{name}.{domain}".rstrip(".") for domain in self.search]
        if name.count(".") >= self.dots:
            return [*dict.fromkeys([name, *searched])]
        return [*dict.fromkeys([*searched, name])]


def resolver_settings(process: Process) -> ResolverSettings:
    return resolver_settings_in(process.host.files)


def resolver_settings_in(files: FileSystem) -> ResolverSettings:
    """Return the settings in /etc/resolv.conf."""
    servers, search, dots = list[str](), list[str](), 1
    for line in _lines(files, "/etc/resolv.conf"):
        match line.split():
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search" | "domain", *domains]:
                search = domains
            case ["options", *options]:
                for option in options:
                    name, _, value = option.partition(":")
                    if name == "ndots" and value.isdecimal() and len(value) < 3:
                        dots = int(value)
            case _:
                pass
    return ResolverSettings(server=servers[0] if servers else "127.0.0.1", search=tuple(search), dots=dots)


def _lines(files: FileSystem, path: str) -> list[str]:
    try:
        return files.read(path).decode("utf-8", "replace").splitlines()
    except FileError:
        return []


def wait_for_failure(reply: Reply, limit: float) -> Generator[Effect, bytes | None, bool]:
    """Wait as long as a failed connection takes, at most `limit`; return whether the limit was reached first."""
    seconds = {"timeout": CONNECT_SECONDS, "unreachable": UNREACHABLE_SECONDS}.get(reply.outcome, 0.0)
    if seconds:
        yield Sleep(min(seconds, limit))
    return seconds > limit


REASONS: Final = {
    "refused": "Connection refused",
    "timeout": "Connection timed out",
    "unreachable": "Host is unreachable",
}
"""The C library's messages about failed connections."""
