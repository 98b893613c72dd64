"""The cluster's name server for pods with a network of their own: it asks what the cluster knows, and the machine's servers for the rest."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from mockube.component_base.clock import Clock
from mockube.component_base.supervision import timeout
from mockube.container_runtime.streams import ClientConnection, StreamsClosed

from .datagrams import Receiver
from .decisions import Names
from .name_messages import (
    InvalidAnswer,
    InvalidQuery,
    NameQuery,
    encode_answer,
    encode_answer_of_target,
    encode_failure,
    encode_target_query,
    parse_query,
)

RESOLVER_FILE: Final = Path("/etc/resolv.conf")
_PORT: Final = 53
_SECONDS: Final = 2.0
"""How long a server of the machine has for its answer."""
_LENGTH: Final = struct.Struct("!H")

LookUp = Callable[[str, str], Awaitable[Names]]
"""Answers a query of one pod: a name, and a type of records."""


async def answer_datagram(data: bytes, look_up: LookUp, clock: Clock) -> bytes:
    """Return the answer to a datagram; b"" for none."""
    return await _answer(data, look_up, clock, is_datagram=True)


async def serve_stream(look_up: LookUp, clock: Clock, client: ClientConnection) -> str:
    """Answer the queries of a TCP connection, one after the other."""
    buffer = b""
    with suppress(StreamsClosed):
        while True:
            while len(buffer) < _LENGTH.size or len(buffer) < _LENGTH.size + _LENGTH.unpack_from(buffer)[0]:
                data = await client.read(1 << 16)
                if not data:
                    return ""
                buffer += data
            end = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
            query, buffer = buffer[_LENGTH.size : end], buffer[end:]
            answer = await _answer(query, look_up, clock, is_datagram=False)
            if not answer:
                return ""
            await client.write(_LENGTH.pack(len(answer)) + answer)
    return ""


async def _answer(data: bytes, look_up: LookUp, clock: Clock, *, is_datagram: bool) -> bytes:
    try:
        query = parse_query(data)
    except InvalidQuery:
        return b""
    names = await look_up(query.name, query.record_type)
    if names.is_dropped:
        return b""
    if names.is_outside:
        answer = await _ask_outside(data, query, names, clock, is_datagram=is_datagram)
        return answer or encode_failure(query)
    return encode_answer(query, names, is_datagram=is_datagram)


async def _ask_outside(
    data: bytes, query: NameQuery, names: Names, clock: Clock, *, is_datagram: bool
) -> bytes:
    """Return the machine's answer to a query, or the aliases with its answer about their target; b"" for none."""
    if not names.target:
        return await _ask_machine(data, clock, is_datagram=is_datagram)
    question = encode_target_query(query, names.target)
    answer = await _ask_machine(question, clock, is_datagram=is_datagram)
    try:
        return encode_answer_of_target(query, names.records, answer, is_datagram=is_datagram)
    except InvalidAnswer:
        return b""


async def _ask_machine(data: bytes, clock: Clock, *, is_datagram: bool) -> bytes:
    """Return the answer of the machine's name servers; b"" if there is none."""
    for server in machine_servers(RESOLVER_FILE):
        with suppress(OSError, TimeoutError, EOFError):
            async with timeout(clock.real, _SECONDS):
                return await (_ask_by_datagram if is_datagram else _ask_by_stream)(server, data)
    return b""


def machine_servers(path: Path) -> list[str]:
    """Return the addresses of the name servers in a resolv.conf."""
    servers = []
    with suppress(OSError, UnicodeDecodeError):
        for line in path.read_text().splitlines():
            words = line.split()
            with suppress(ValueError):
                if len(words) > 1 and words[0] == "nameserver":
                    servers.append(str(ip_address(words[1])))
    return servers


async def _ask_by_datagram(server: str, data: bytes) -> bytes:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()

    def receive(text: bytes, _: Any) -> None:
        if not answer.done() and text[:2] == data[:2]:
            answer.set_result(text)

    transport, _ = await loop.create_datagram_endpoint(lambda: Receiver(receive), remote_addr=(server, _PORT))
    try:
        transport.sendto(data)
        return await answer
    finally:
        transport.close()


async def _ask_by_stream(server: str, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(server, _PORT)
    try:
        writer.write(_LENGTH.pack(len(data)) + data)
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return await reader.readexactly(length)
    finally:
        writer.close()
