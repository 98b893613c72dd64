"""Datagrams of simulated programs to processes in networks of their own."""

import asyncio
import socket

import pytest

from mockube.component_base.clock import RealClock
from mockube.container_runtime.pod_network.datagrams import Receiver
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.simulated.connections import local_connections
from mockube.container_runtime.simulated.connections.local_connections import send_datagram_locally


async def open_socket(_host, _source, kind):
    opened = socket.socket(socket.AF_INET, kind)
    opened.setblocking(False)  # noqa: FBT003 - of the library
    return opened


@pytest.fixture
async def serve():
    """Start a server that answers each datagram; return its port."""
    transports = []

    async def start(answer):
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: Receiver(lambda data, client: answer(data) and transport.sendto(answer(data), client)),
            local_addr=("127.0.0.1", 0),
        )
        transports.append(transport)
        return ProcessPort("127.0.0.1", transport.get_extra_info("sockname")[1], open_socket)

    yield start
    for transport in transports:
        transport.close()


async def test_answer_to_a_datagram_comes_back(serve):
    reply = await send_datagram_locally(await serve(bytes.upper), b"hello", RealClock())
    assert (reply.outcome, reply.body) == ("open", b"HELLO")


async def test_datagram_without_an_answer_is_sent(serve, monkeypatch):
    monkeypatch.setattr(local_connections, "_DATAGRAM_SECONDS", 0.0)
    reply = await send_datagram_locally(await serve(lambda _: b""), b"hello", RealClock())
    assert (reply.outcome, reply.body) == ("open", b"")


async def test_datagram_to_a_closed_port_is_refused():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    reply = await send_datagram_locally(ProcessPort("127.0.0.1", port, open_socket), b"x", RealClock())
    assert reply.outcome == "refused"
