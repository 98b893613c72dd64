"""Measure the CPU time of a request and of a watch event in the controller manager, in microseconds.

    python benchmarks/manager_client.py

The server is a process that always returns the same response, over TLS. An event is measured from its line
on, without the network.
"""

import asyncio
import multiprocessing
import ssl
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import orjson
import uvloop

from benchmarks.decode import POD
from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.issue import CertificateIssuer, Pair, Subject, make_authority
from mockube.client.cache.informer import Informer
from mockube.client.cache.reflector import parse_watch_event
from mockube.client.component_helpers import indexes
from mockube.client.connect import ClientOptions, connect
from mockube.client.kinds import PODS
from mockube.client.kubeconfig import Access
from mockube.client.verbs import Client
from mockube.component_base.clock import RealClock
from mockube.controller_manager.workloads import ownership

TIMES, ROUNDS = 2000, 5
SINCE = "2030-01-01T00:00:00Z"
STATUS = {
    "phase": "Running",
    "conditions": [
        {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": SINCE}
        for name in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ],
    "containerStatuses": [
        {"name": "c", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": SINCE}}}
    ],
}
MANAGED = [
    {
        "manager": manager,
        "operation": "Update",
        "fieldsV1": {"f:spec": {f"f:field{number}": {".": {}, "f:a": {}, "f:b": {}} for number in range(12)}},
    }
    for manager in ("kube-controller-manager", "kubelet")
]
METADATA = {**POD["metadata"], "uid": "u", "resourceVersion": "1", "managedFields": MANAGED}
TREE = {**POD, "metadata": METADATA, "status": STATUS}
"""A running pod."""
BODY = orjson.dumps(TREE)
ANSWER = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)


class Parrot(asyncio.Protocol):
    def connection_made(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport
        self._heard = b""

    def data_received(self, data: bytes) -> None:
        self._heard += data
        if self._heard.endswith(BODY):
            self._heard = b""
            self._transport.write(ANSWER)


def serve(pair: Pair, port: "multiprocessing.Queue[int]") -> None:
    async def forever() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(pair.certificate + pair.key)
            file.flush()
            context.load_cert_chain(file.name)
        server = await asyncio.get_running_loop().create_server(Parrot, "127.0.0.1", 0, ssl=context)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(forever())


async def request_cost(client: Client, at_once: int) -> float:
    async def some() -> None:
        for _ in range(TIMES // at_once):
            await client.create(PODS, TREE)

    began = time.process_time()
    await asyncio.gather(*(some() for _ in range(at_once)))
    return (time.process_time() - began) / TIMES * 1e6


async def event_cost() -> float:
    informer = Informer(PODS, clock=RealClock())
    informer.add_index(ownership.BY_OWNER, ownership.owner_of_pod)
    informer.add_index(indexes.BY_NODE, indexes.node_of_pod)
    informer.add_handler(lambda _: None)
    line = orjson.dumps({"type": "MODIFIED", "object": TREE})
    began = time.process_time()
    for _ in range(TIMES):
        _, tree, _ = parse_watch_event(line)
        informer.put(tree)
    return (time.process_time() - began) / TIMES * 1e6


async def measure(authority: bytes, port: int) -> None:
    access = Access(server=f"https://127.0.0.1:{port}", authority=authority, token="t" * 900)
    async with connect(ClientOptions(access=access, clock=RealClock())) as client:
        for at_once in (1, 16):
            best = min([await request_cost(client, at_once) for _ in range(ROUNDS)])
            print(f"a request, {at_once:2} at once  {best:6.1f}")
    print(f"an event of a watch   {min([await event_cost() for _ in range(ROUNDS)]):6.1f}")


def main() -> None:
    now, random = RealClock().now(), SystemRandom()
    authority = make_authority("benchmark", now=now, random=random)
    pair = CertificateIssuer(authority, now=now, random=random).issue(
        Subject(name="server", hosts=("127.0.0.1",))
    )
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    server = context.Process(target=serve, args=(pair, port), daemon=True)
    server.start()
    uvloop.run(measure(authority.certificate, port.get()))
    server.terminate()
    server.join()


if __name__ == "__main__":
    main()
