"""The store of the cluster as etcdctl sees it on control-plane nodes, and the restoring of its snapshots.

The API server keeps the objects. A snapshot names a revision, and when etcd starts on a data folder that was restored from it,
the objects of that revision become the newest ones again, by a Rewind. All requests are those of the administrator, whose
credentials control-plane nodes have.
"""

import logging
from asyncio import Lock, Task
from collections.abc import Callable
from ssl import SSLError
from typing import Any, Final

import orjson
from msgspec import structs

from mockube.apimachinery import meta
from mockube.apimachinery.groups import CONTROL
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import NODES
from mockube.client.wire import NoResponse, Request
from mockube.component_base.supervision import start
from mockube.container_runtime.etcd_snapshots import DATABASE, data_folder, decode, encode
from mockube.container_runtime.node_machine import NodeMachines, ServiceFailed
from mockube.kubelet.node_objects import internal_ip
from mockube.kubelet.running_programs import running_programs
from mockube.kubelet.settings import KubeletContext

LOG: Final = logging.getLogger(__name__)

ETCD: Final = "etcd"
FAILED: Final = "FailedEtcdRestore"
"""The reason of the Event on a node whose etcd has data that cannot be restored."""
_SECONDS: Final = 65.0
_OBJECTS: Final = b"apiserver_storage_objects{"
_SIZE: Final = b"apiserver_storage_size_bytes{"


class EtcdStore:
    def __init__(
        self,
        context: KubeletContext,
        machines: NodeMachines,
        administrator: Callable[[], tuple[str, str] | None],
        pods: Callable[[str], Any],
    ) -> None:
        """Restore what etcd finds when it starts; `pods` returns the pods of a node."""
        self._client = context.client
        self._nodes = context.informers.of(NODES)
        self._recorder = context.recorder.of(ETCD)
        self._machines = machines
        self._administrator = administrator
        self._programs = running_programs(context)
        self._runs: dict[str, int] = {}
        """The runs of etcd whose data were read, by node."""
        self._lock = Lock()
        self._tasks = set[Task[None]]()
        self._pods = pods
        self._programs.on_change(self._on_programs_change)

    async def status(self) -> dict[str, Any]:
        """Return the members of etcd, and what the store has."""
        metrics = (await self._send("GET", "/metrics")).splitlines()
        namespaces = orjson.loads(await self._send("GET", "/api/v1/namespaces?limit=1"))
        running = self._programs.runs(ETCD)
        members = [
            node
            for node in self._nodes.lister.all()
            if meta.name(node) in running or self._etcd_pod(meta.name(node)) is not None
        ]
        return {
            "members": [
                {"name": meta.name(node), "address": internal_ip(node), "runs": meta.name(node) in running}
                for node in sorted(members, key=meta.name)
            ],
            "revision": int(namespaces["metadata"]["resourceVersion"]),
            "keys": sum(int(line.split()[-1]) for line in metrics if line.startswith(_OBJECTS)),
            "size": sum(int(float(line.split()[-1])) for line in metrics if line.startswith(_SIZE)),
        }

    async def check(self, revision: int) -> None:
        """Raise `ServiceFailed` if a revision is no longer in the history."""
        await self._send("GET", f"/mockube/at/{revision}/api/v1/namespaces?limit=1")

    def _etcd_pod(self, node: str) -> ReadOnlyTree | None:
        return next((pod for pod in self._pods(node) if meta.labels(pod).get("component") == ETCD), None)

    def _on_programs_change(self) -> None:
        runs = self._programs.runs(ETCD)
        for node, _ in runs.items() - self._runs.items():
            task = start("restore the data of etcd", self._read_data(node))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._runs = dict(runs)

    async def _read_data(self, node: str) -> None:
        """Make the objects of a restored data folder the newest ones, once."""
        async with self._lock:
            pod = self._etcd_pod(node)
            folder = "" if pod is None else data_folder(pod)
            file = self._machines.find(node, f"{folder}/{DATABASE}") if folder else None
            snapshot = None if file is None else decode(file.data)
            if snapshot is None or not snapshot.restored:
                return
            body = {
                "apiVersion": f"{CONTROL}/v1alpha1",
                "kind": "Rewind",
                "spec": {"to": str(snapshot.revision)},
            }
            try:
                await self._send("POST", f"/apis/{CONTROL}/v1alpha1/rewinds", orjson.dumps(body))
            except ServiceFailed as error:
                self._report(node, f"{folder} was restored from revision {snapshot.revision}: {error}")
                return
            self._machines.write(node, f"{folder}/{DATABASE}", encode(structs.replace(snapshot, restored="")))
            LOG.info("etcd on node %s has the objects of revision %d", node, snapshot.revision)

    def _report(self, name: str, problem: str) -> None:
        LOG.error("%s", problem)
        node = self._nodes.lister.get("", name)
        if node is not None:
            self._recorder.record_on(name, node, "Warning", FAILED, problem)

    async def _send(self, method: str, target: str, body: bytes = b"") -> bytes:
        pair = self._administrator()
        if pair is None:
            raise ServiceFailed("the credentials of the cluster's administrator are not known here")
        headers = {"Content-Type": "application/json", "User-Agent": ETCD}
        request = Request(method=method, target=target, headers=headers, body=body, timeout=_SECONDS)
        certificate, key = (each.encode() for each in pair)
        try:
            response = await self._client.exchange(request, certificate, key)
        except (NoResponse, ValueError, SSLError) as error:  # the certificate may belong to another key
            raise ServiceFailed(str(error)) from error
        if not 200 <= response.status < 300:
            raise ServiceFailed(_message(response.body, response.status))
        return response.body


def _message(body: bytes, code: int) -> str:
    try:
        return str(orjson.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return f"the API server answers {code}"
