"""The machine of a node without a kubelet: its programs ask services that a test sets."""

import asyncio

import orjson

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.node_machine import NodeCredentials, ServiceFailed
from mockube.container_runtime.simulated.network.calls import HttpRequest, Reply, decode_call, encode_reply
from mockube.container_runtime.simulated.node.node_files import NodeInodes
from mockube.container_runtime.simulated.node.node_host import node_host
from mockube.container_runtime.simulated.node.root_files import root_files
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Input, NetworkCall, Output, Sleep
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.images import IMAGES

NODE = {
    "metadata": {"name": "node-1", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "status": {
        "addresses": [{"type": "InternalIP", "address": "172.18.0.1"}],
        "capacity": {"cpu": "4", "memory": "8Gi"},
        "nodeInfo": {"osImage": "Debian GNU/Linux 12 (bookworm)", "kubeletVersion": "v1.37.2"},
    },
}
SERVER = "https://10.0.0.9:6443"
RUNNING = {
    "state": "running",
    "since": "2026-01-01T00:00:00+00:00",
    "pid": 1,
    "command": "/usr/bin/x",
    "status": "",
    "result": "",
}


class Machine:
    """A node whose services answer with values, or with what functions return."""

    def __init__(self, node=NODE, pods=(), *, administrator=None, **services):
        self.changes = []
        files = root_files(
            node,
            pods,
            server=SERVER,
            authority=b"CA",
            credentials=NodeCredentials(administrator=administrator),
        )
        self.files = FileSystem(inodes=NodeInodes(files, lambda: self.changes.append(1)))
        self.services = {"units": {"kubelet": RUNNING, "containerd": RUNNING}, **services}
        self.requests = []
        clock = SteppedClock()
        self.host = node_host(IMAGES, node, pods, self.files, clock.now)

    def run(self, *argv, stdin=b"", lines=None, has_terminal=False):
        """Run a command; return its exit code, its output and its error output. With `lines` of input, long sleeps are interrupted."""
        self.host.has_terminal = has_terminal
        self.host.has_open_input = bool(stdin or lines)
        execution = run_command(self.host, argv, dict(self.host.environment), "/")
        outputs, reply = {1: b"", 2: b""}, None
        self.output = outputs
        while True:
            try:
                effect = execution.send(reply)
            except StopIteration as stop:
                return stop.value, outputs[1].decode(), outputs[2].decode()
            reply = None
            match effect:
                case Output(descriptor=number, data=data):
                    outputs[number] += data
                case Input() if lines is not None:
                    reply = lines.pop(0)
                case Input():
                    reply, stdin = stdin, b""
                case Sleep(seconds=seconds) if lines is not None and seconds > 1:
                    self.host.interrupt()
                    reply = b"0.5"
                case NetworkCall(request=request):
                    reply = self._answer(decode_call(request))

    def _answer(self, request):
        if isinstance(request, HttpRequest):
            self.requests.append(request)
            return encode_reply(self.services["http"](request))
        arguments = orjson.loads(request.arguments)
        self.requests.append((request.service, arguments))
        answer = self.services.get(request.service)
        try:
            body = answer(arguments) if callable(answer) else answer
        except ServiceFailed as error:
            return encode_reply(Reply(outcome="failed", body=str(error).encode()))
        return encode_reply(Reply(outcome="open", body=orjson.dumps(body)))


class CollectedStreams:
    """The streams of a command whose output a test reads."""

    def __init__(self, stdin=None):
        self.stdin = stdin
        self.sizes = None
        self.departure = asyncio.Event()
        self.output = b""

    async def write(self, _, data):
        self.output += data

    async def finish(self, status):
        pass
