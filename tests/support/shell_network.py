"""Runs scripts of a simulated container in a small network."""

from datetime import UTC, datetime

from mockube.container_runtime.simulated.network.calls import (
    Connect,
    Exchange,
    HttpRequest,
    Lookup,
    Open,
    Reply,
    decode_call,
    encode_reply,
)
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Host, Input, NetworkCall, Output, Sleep
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

RESOLVER = b"search default.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n"
HOSTS = b"127.0.0.1\tlocalhost\n10.244.0.9\tme\n10.9.9.9\talias other # comment\n"
ADDRESSES = {"web.default.svc.cluster.local": "10.0.0.7", "db.prod.svc.cluster.local": "10.0.0.8"}
ADDRESSES_OF_IPV6 = {"six.default.svc.cluster.local": "fd00:10::7"}
SERVED = {("fd00:10::7", 80), ("10.0.0.7", 80), ("10.0.0.7", 443), ("10.0.0.8", 6379), ("127.0.0.1", 5432)}
AUTHORITY = b"-----BEGIN CERTIFICATE-----"


class ShellNetwork:
    """A network with a few names and ports; the others do not exist, refuse or do not answer."""

    def __init__(self):
        self.calls = []
        self.paths = {"/": Reply(outcome="open", speaks="http", status=200, reason="OK", body=b"hello\n")}
        self.dropped = {("10.0.0.7", 81)}
        self.speaks = {("10.0.0.8", 6379): "redis"}
        self.replies = {}
        """What ends of connections send back, by address and port."""
        self.is_silent = False
        """Whether servers keep connections open, and send nothing more."""
        self.dns_outcome = "open"
        self.occupied_ports = frozenset()

    def answer(self, call):
        self.calls.append(call)
        match call:
            case Lookup():
                return self._look_up(call)
            case Connect(protocol="ICMP"):
                return Reply(outcome="open" if call.address == "10.244.0.9" else "timeout")
            case Connect():
                return self._open(call)
            case Open():
                reply = self._open(call)
                return Reply(outcome=reply.outcome, socket=int(reply.is_open))
            case Exchange():
                opened = next(each for each in self.calls if isinstance(each, Open))
                body = b"" if self.is_silent else self._open(opened).body
                return Reply(outcome="open", body=body, is_ended=not self.is_silent)
            case HttpRequest():
                opened = self._open(call)
                return self._respond(call) if opened.is_open else opened

    def _look_up(self, call):
        if call.name == "example.com":
            return Reply(outcome="outside")
        addresses = {"A": ADDRESSES, "AAAA": ADDRESSES_OF_IPV6}.get(call.record_type, {})
        address = addresses.get(call.name)
        records = ((call.name, call.record_type, address),) if address else ()
        exists = call.name in ADDRESSES | ADDRESSES_OF_IPV6
        return Reply(outcome=self.dns_outcome, exists=exists, records=records)

    def _open(self, call):
        target = call.address, call.port
        outcome = "open" if target in SERVED else "timeout" if target in self.dropped else "refused"
        speaks = self.speaks.get(target, "")
        body = b"+PONG\r\n" if speaks == "redis" else self.replies.get(target, b"")
        return Reply(outcome=outcome, speaks=speaks, body=body)

    def _respond(self, call):
        uses_tls = call.port == 443
        if call.uses_tls is not uses_tls:
            return Reply(outcome="open", speaks="http", uses_tls=uses_tls)
        missing = Reply(outcome="open", speaks="http", status=404, reason="Not Found", body=b"none\n")
        reply = self.paths.get(call.path, missing)
        values = {name: getattr(reply, name) for name in Reply.__struct_fields__}
        return Reply(**values | {"uses_tls": uses_tls, "authority": AUTHORITY})


class CommandEnd:
    """The end of a program."""

    def __init__(self, code, out, err, seconds, files):
        self.code, self.out, self.err, self.seconds, self.files = code, out, err, seconds, files


def run_script(command, network=None, *, stdin=b""):
    network = network or ShellNetwork()
    paths = {"/etc/resolv.conf": RESOLVER, "/etc/hosts": HOSTS, "/ca.crt": AUTHORITY, "/other.crt": b"other"}
    files = FileSystem({path: FileEntry(data=data) for path, data in paths.items()})
    host = Host(
        hostname="me",
        files=files,
        now=lambda: datetime(2030, 1, 1, tzinfo=UTC),
        programs=PROGRAMS,
        is_strict=True,
        occupied_ports=network.occupied_ports,
    )
    execution = run_command(host, ["sh", "-c", command], {})
    streams = {1: b"", 2: b""}
    reply, remaining = None, stdin
    while True:
        try:
            effect = execution.send(reply)
        except StopIteration as stop:
            return CommandEnd(stop.value, streams[1].decode(), streams[2].decode(), host.elapsed, files)
        reply = None
        match effect:
            case Output(descriptor=descriptor, data=data):
                streams[descriptor] += data
            case Sleep(seconds=seconds):
                host.elapsed += seconds
            case Input():
                reply, remaining = remaining, b""
            case NetworkCall(request=request):
                reply = encode_reply(network.answer(decode_call(request)))
