"""What etcdctl sees of the store, and the restored data that etcd finds when it starts."""

import asyncio
import re
from types import SimpleNamespace

import orjson
import pytest

from mockube.client.kinds import NODES
from mockube.container_runtime.etcd_snapshots import DATABASE, EtcdSnapshot, decode, encode
from mockube.container_runtime.node_machine import ServiceFailed
from mockube.kubelet.node_machine import etcd_store
from mockube.kubelet.node_machine.etcd_store import EtcdStore

FOLDER = "/var/lib/etcd"
METRICS = b"""# HELP x
apiserver_storage_objects{resource="pods"} 3
apiserver_storage_objects{resource="nodes"} 2
apiserver_storage_size_bytes{cluster="x"} 1.5e+03
apiserver_storage_list_total 9
"""


def node(name, address):
    return {"metadata": {"name": name}, "status": {"addresses": [{"type": "InternalIP", "address": address}]}}


def etcd_pod():
    mounts = [{"name": "etcd-data", "mountPath": FOLDER}]
    command = ["etcd", f"--data-dir={FOLDER}"]
    return {
        "metadata": {"name": "etcd-a", "labels": {"component": "etcd"}},
        "spec": {
            "containers": [{"name": "etcd", "command": command, "volumeMounts": mounts}],
            "volumes": [{"name": "etcd-data", "hostPath": {"path": FOLDER}}],
        },
    }


class Programs:
    def __init__(self):
        self.running = {}

    def on_change(self, callback):
        self.change = callback

    def runs(self, program):
        assert program == "etcd"
        return self.running


class Machines:
    def __init__(self):
        self.files = {}

    def find(self, machine, path):
        data = self.files.get((machine, path))
        return None if data is None else SimpleNamespace(data=data)

    def write(self, machine, path, data):
        self.files[machine, path] = data


class Cluster:
    def __init__(self, monkeypatch, nodes):
        self.sent, self.events, self.refusal = [], [], 0
        self.programs, self.machines, self.pods = Programs(), Machines(), {}
        monkeypatch.setattr(etcd_store, "running_programs", lambda _: self.programs)
        lister = SimpleNamespace(
            all=lambda: nodes,
            get=lambda _, name: next((each for each in nodes if each["metadata"]["name"] == name), None),
        )
        informers = SimpleNamespace(
            of=lambda resource: SimpleNamespace(lister=lister) if resource is NODES else None
        )
        recorder = SimpleNamespace(
            of=lambda _: SimpleNamespace(record_on=lambda *event: self.events.append(event))
        )
        context = SimpleNamespace(client=self, informers=informers, recorder=recorder)
        self.store = EtcdStore(
            context, self.machines, lambda: ("c", "k"), lambda name: self.pods.get(name, ())
        )

    async def exchange(self, request, *pair):
        assert pair == (b"c", b"k")
        self.sent.append((request.method, request.target, request.body))
        if self.refusal:
            return SimpleNamespace(status=self.refusal, body=b"[]")
        body = METRICS if request.target == "/metrics" else b'{"metadata": {"resourceVersion": "42"}}'
        return SimpleNamespace(status=200, body=body)

    async def start(self, **runs):
        self.programs.running = runs
        self.programs.change()
        await asyncio.gather(*self.store._tasks)

    def restore(self, restored="r"):
        self.pods["a"] = [{"metadata": {}}, etcd_pod()]
        snapshot = EtcdSnapshot(revision=7, keys=5, size=9, version="3.6", restored=restored)
        self.machines.files["a", f"{FOLDER}/{DATABASE}"] = encode(snapshot)


@pytest.fixture
def cluster(monkeypatch):
    return Cluster(monkeypatch, [node("b", "10.2.0.2"), node("a", "10.2.0.1"), node("c", "10.2.0.3")])


async def test_status_has_the_members_and_what_the_store_has(cluster):
    cluster.pods["b"] = [etcd_pod()]
    cluster.programs.running = {"a": 1}
    assert await cluster.store.status() == {
        "members": [
            {"name": "a", "address": "10.2.0.1", "runs": True},
            {"name": "b", "address": "10.2.0.2", "runs": False},
        ],
        "revision": 42,
        "keys": 5,
        "size": 1500,
    }


async def test_restored_data_are_rewound_to_once(cluster):
    cluster.restore()
    await cluster.start(a=1)
    ((method, path, body),) = cluster.sent
    assert (method, path) == ("POST", "/apis/control.mockube.dev/v1alpha1/rewinds")
    assert (orjson.loads(body)["kind"], orjson.loads(body)["spec"]) == ("Rewind", {"to": "7"})
    assert decode(cluster.machines.files["a", f"{FOLDER}/{DATABASE}"]).restored == ""
    await cluster.start(a=1)
    await cluster.start(a=2)
    assert len(cluster.sent) == 1


@pytest.mark.parametrize("what", ["no pod", "no file", "other data", "own data"])
async def test_data_that_were_not_restored_are_left(cluster, what):
    cluster.restore(restored="" if what == "own data" else "r")
    if what == "no pod":
        cluster.pods.clear()
    elif what == "no file":
        cluster.machines.files.clear()
    elif what == "other data":
        cluster.machines.files["a", f"{FOLDER}/{DATABASE}"] = b"x"
    await cluster.start(a=1)
    assert cluster.sent == []


@pytest.mark.parametrize("is_there", [True, False])
async def test_data_that_cannot_be_restored_are_reported(cluster, caplog, is_there):
    cluster.restore()
    cluster.refusal = 410
    if not is_there:
        cluster.store._nodes.lister.get = lambda *_: None
    await cluster.start(a=1)
    problem = f"{FOLDER} was restored from revision 7: the API server answers 410"
    assert [each.getMessage() for each in caplog.records] == [problem]
    assert [event[2:] for event in cluster.events] == (
        [("Warning", "FailedEtcdRestore", problem)] if is_there else []
    )
    assert decode(cluster.machines.files["a", f"{FOLDER}/{DATABASE}"]).restored == "r"


@pytest.mark.parametrize("code", [199, 300, 500])
async def test_answer_that_is_no_success_is_a_failure(cluster, code):
    cluster.refusal = code
    with pytest.raises(ServiceFailed, match=re.escape(f"the API server answers {code}")):
        await cluster.store.check(3)
    assert cluster.sent == [("GET", "/mockube/at/3/api/v1/namespaces?limit=1", b"")]
