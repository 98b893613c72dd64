"""The cluster's name server with a name server of the machine."""

import asyncio
import struct

import pytest

from mockube.component_base.clock import RealClock
from mockube.container_runtime.pod_network import name_server
from mockube.container_runtime.pod_network.datagrams import Receiver
from mockube.container_runtime.pod_network.decisions import Names
from mockube.container_runtime.pod_network.name_messages import encode_answer, parse_query

ALIAS = ("ext.default.svc.cluster.local", "CNAME", "db.example.")


def encode_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def query(name):
    return struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + encode_name(name) + struct.pack("!HH", 1, 1)


class Machine:
    """A name server that knows one name; it serves datagrams and streams."""

    def __init__(self):
        self.asked = []

    def answer(self, data):
        asked = parse_query(data)
        self.asked.append(asked.name)
        records = [(asked.name, "A", "192.0.2.7")] if asked.name == "db.example" else ()
        return encode_answer(asked, Names(exists=bool(records), records=records))

    async def serve_stream(self, reader, writer):
        (length,) = struct.unpack("!H", await reader.readexactly(2))
        answer = self.answer(await reader.readexactly(length))
        writer.write(struct.pack("!H", len(answer)) + answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def machine(monkeypatch, tmp_path):
    machine = Machine()
    server = await asyncio.start_server(machine.serve_stream, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: Receiver(lambda data, client: transport.sendto(machine.answer(data), client)),
        local_addr=address,
    )
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\n")
    monkeypatch.setattr(name_server, "RESOLVER_FILE", resolver)
    monkeypatch.setattr(name_server, "_PORT", address[1])
    yield machine
    transport.close()
    server.close()


async def look_up(name, _record_type):
    records = [ALIAS] if name.startswith("ext.") else []
    target = "db.example" if records else ""
    return Names(exists=True, records=records, is_outside=True, target=target)


class Client:
    """A connection that sends one query."""

    def __init__(self, data):
        self.data, self.received = struct.pack("!H", len(data)) + data, b""

    async def read(self, _):
        data, self.data = self.data, b""
        return data

    async def write(self, data):
        self.received += data


async def ask(name, *, is_datagram):
    if is_datagram:
        return await name_server.answer_datagram(query(name), look_up, RealClock())
    client = Client(query(name))
    await name_server.serve_stream(look_up, RealClock(), client)
    return client.received[2:]


@pytest.mark.parametrize("is_datagram", [True, False], ids=["datagram", "stream"])
async def test_alias_of_outside_name_is_answered_with_records_of_its_target(machine, is_datagram):
    answer = await ask("ext.default.svc.cluster.local", is_datagram=is_datagram)
    assert machine.asked == ["db.example"]
    assert struct.unpack_from("!HHHH", answer)[0::3] == (7, 2)
    assert answer.startswith(encode_name("ext.default.svc.cluster.local"), 12)
    assert answer.endswith(bytes([192, 0, 2, 7]))


async def test_outside_name_is_answered_by_the_machine(machine):
    answer = await ask("other.example", is_datagram=True)
    assert machine.asked == ["other.example"]
    assert struct.unpack_from("!HH", answer)[1] & 15 == 3


async def test_alias_without_server_of_the_machine_is_a_failure(machine, tmp_path):
    (tmp_path / "resolv.conf").write_text("")
    answer = await ask("ext.default.svc.cluster.local", is_datagram=True)
    assert (machine.asked, struct.unpack_from("!HH", answer)[1] & 15) == ([], 2)
