"""Which address a process in a network of its own sees of its client."""

import asyncio
from functools import partial

import pytest

from mockube.component_base.clock import RealClock
from mockube.container_runtime.pod_network.network import PodNetwork
from mockube.container_runtime.process_port import ProcessPort
from tests.support.pod_network import POD, require_pod_network

ADDRESS, GATEWAY, PORT = POD["status"]["podIP"], "169.254.1.1", 8080


@pytest.fixture
async def network():
    await require_pod_network()
    started = PodNetwork(RealClock())
    await started.attach(POD)
    yield started
    await started.close()


async def serve(network):
    """Listen in the network of the pod, and send to each client its address."""

    async def tell(_, writer):
        writer.write(writer.get_extra_info("peername")[0].encode())
        writer.close()

    listener = await network.open_socket(POD, "127.0.0.1")
    listener.bind(("", PORT))
    return await asyncio.start_server(tell, sock=listener)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("", GATEWAY),
        ("203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", GATEWAY),
        ("2001:db8::1", GATEWAY),
        ("169.254.7.7", GATEWAY),
        (ADDRESS, GATEWAY),
    ],
    ids=["none", "outside", "node", "loopback", "other version", "link-local", "itself"],
)
async def test_process_sees_address_of_its_client(network, source, seen):
    port = ProcessPort(ADDRESS, PORT, partial(network.open_socket, POD)).seen_from(source)
    async with await serve(network):
        for _ in range(2):
            reader, writer = await asyncio.wait_for(port.connect(), 10)
            assert await asyncio.wait_for(reader.read(), 10) == seen.encode()
            writer.close()
            await writer.wait_closed()


@pytest.mark.thorough
async def test_many_connections_can_be_opened_at_once(network):
    """The kernel keeps 560 requests to the process with the namespaces on Linux 6."""
    opened = await asyncio.gather(*(network.open_socket(POD, ADDRESS) for _ in range(1000)))
    for each in opened:
        each.close()
    assert len(opened) == 1000
