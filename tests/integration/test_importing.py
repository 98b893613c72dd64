"""Import of another cluster's objects: content and owners stay, and controllers create no duplicates."""

import asyncio
import contextlib

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager import catalog
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.importing.documents import Document, Origin
from mockube.importing.importer import Importer, ImportOptions, ImportOutcome
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.running_manager import running_manager
from tests.support.server.apiserver import running
from tests.support.server.definitions import definition

PODS = "/api/v1/namespaces/shop/pods"
SETS = "/apis/apps/v1/namespaces/shop/replicasets"
CONFIG = Config(simulation=Simulation(simulate_nodes=plain_nodes(1)))


class ImportingCluster:
    def __init__(self, server, manager):
        self.server = server
        self.manager = manager

    async def get(self, path):
        return (await self.server.get(path)).body

    async def names(self, path):
        return {item["metadata"]["name"] for item in (await self.get(path))["items"]}

    async def objects_at(self, *paths):
        """Return the objects as `kubectl get -o yaml` prints them."""
        trees = []
        for path in paths:
            listed = await self.get(path)
            kind = listed["kind"].removesuffix("List")
            trees += [{"apiVersion": listed["apiVersion"], "kind": kind, **item} for item in listed["items"]]
        return trees

    async def load(self, trees, **wishes):
        """Return the result for each object, by kind and name."""
        outcomes = []
        documents = [
            Document(origin=Origin(file="f", document=at), tree=tree) for at, tree in enumerate(trees, 1)
        ]
        importer = Importer(self.manager.client, self.manager.clock, ImportOptions(**wishes), outcomes.append)
        work = asyncio.create_task(importer.run(documents))
        await self.manager.settle()
        while not work.done():
            await asyncio.to_thread(
                int
            )  # definitions are compiled in a thread, which a step of the clock does not wait for
            await self.manager.step(0.1)
        await work
        await self.manager.settle()
        return {item.title: (str(item.outcome), item.reason) for item in outcomes if item.origin}


@contextlib.asynccontextmanager
async def cluster():
    clock = SteppedClock()
    async with running(clock=clock) as server:
        for name in ("kube-system", "kube-node-lease"):
            await server.post("/api/v1/namespaces", {"metadata": {"name": name}})
        everything = {"controllers": catalog.CONTROLLERS, "runnables": catalog.RUNNABLES, "config": CONFIG}
        async with running_manager(server, clock, **everything) as manager:
            yield ImportingCluster(server, manager)


WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    },
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}
EVERYTHING = (
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/serviceaccounts",
    "/api/v1/configmaps",
    "/api/v1/services",
    "/api/v1/pods",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/discovery.k8s.io/v1/endpointslices",
)


@pytest.fixture(scope="module")
def dump():
    return asyncio.run(source_objects())


async def source_objects():
    """Objects of a cluster in which a Deployment has been rolled out twice."""
    async with cluster() as source:
        await source.server.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        await source.manager.settle()
        await source.server.post("/apis/apps/v1/namespaces/shop/deployments", WEB)
        await source.server.post("/api/v1/namespaces/shop/services", SERVICE)
        await source.manager.step(5)
        image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
        await source.server.patch(
            "/apis/apps/v1/namespaces/shop/deployments/web", image, kind="strategic-merge-patch+json"
        )
        await source.manager.step(60)
        return await source.objects_at(*EVERYTHING)


@pytest.fixture
async def target():
    async with cluster() as target:
        yield target


def trees_of_kind(dump, kind):
    return [tree for tree in dump if tree["kind"] == kind]


def names_of(trees):
    return {tree["metadata"]["name"] for tree in trees}


async def test_controllers_adopt_imported_objects(dump, target):
    pods, sets = trees_of_kind(dump, "Pod"), trees_of_kind(dump, "ReplicaSet")
    assert (len(pods), len(sets)) == (3, 2)
    await target.load(dump)
    await target.manager.step(120)
    assert await target.names(PODS) == names_of(pods)
    assert await target.names(SETS) == names_of(sets)
    deployment = await target.get("/apis/apps/v1/namespaces/shop/deployments/web")
    uids = {"Deployment": deployment["metadata"]["uid"]}
    owners = {
        item["metadata"]["name"]: [one["uid"] for one in item["metadata"]["ownerReferences"]]
        for item in (await target.get(SETS))["items"]
    }
    assert set(map(tuple, owners.values())) == {(uids["Deployment"],)}
    assert deployment["status"]["readyReplicas"] == 3
    for before in pods:
        after = await target.get(f"{PODS}/{before['metadata']['name']}")
        assert after["status"] == before["status"]
        assert (
            after["metadata"]["ownerReferences"][0]["uid"] != before["metadata"]["ownerReferences"][0]["uid"]
        )
    assert len(await target.names("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices")) == 1


async def test_existing_object_is_kept_or_replaced(dump, target):
    wanted = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "new"}}]
    path = "/api/v1/namespaces/default/configmaps/c"
    await target.server.post(path.removesuffix("/c"), {"metadata": {"name": "c"}, "data": {"k": "old"}})
    assert await target.load(wanted) == {"configmap/c": ("exists", "")}
    assert (await target.get(path))["data"] == {"k": "old"}
    assert await target.load(wanted, replace=True) == {"configmap/c": ("replaced", "")}
    assert (await target.get(path))["data"] == {"k": "new"}


async def test_dry_run_import_changes_nothing(dump, target):
    revision = (await target.server.server.registry.kv.status()).revision
    outcomes = await target.load(dump, dry_run=True)
    assert outcomes["deployment.apps/web"] == ("created", "")
    assert outcomes["namespace/default"] == ("exists", "")
    assert (await target.server.server.registry.kv.status()).revision == revision


async def test_imported_pod_without_owner_is_rescheduled(dump, target):
    pods = trees_of_kind(dump, "Pod")
    away = [pods[0] | {"spec": pods[0]["spec"] | {"nodeName": "far-away"}}, *pods[1:]]
    outcomes = await target.load(away, namespace="other")
    why = f"without its owner, which does not exist: ReplicaSet {pods[0]['metadata']['ownerReferences'][0]['name']}"
    assert {outcome for outcome in outcomes.values() if outcome[1]} == {("created", why)}
    await target.manager.step(120)
    bound = (await target.get("/api/v1/namespaces/other/pods"))["items"]
    assert {(pod["spec"]["nodeName"], pod["status"]["phase"]) for pod in bound} == {("node-1", "Running")}
    assert names_of(bound) == names_of(pods)


async def test_existing_owner_is_found_by_name(dump, target):
    await target.load([*trees_of_kind(dump, "Deployment"), *trees_of_kind(dump, "Namespace")])
    outcomes = await target.load(trees_of_kind(dump, "ReplicaSet"))
    assert not any(why for _, why in outcomes.values())


async def test_custom_objects_are_imported_after_definition(target):
    custom = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
    }
    outcomes = await target.load([custom, definition()])
    assert outcomes["widget.example.com/w"] == ("created", "")


async def test_failed_object_is_reported_and_import_continues(target):
    wrong = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "No"}}
    unknown = {"apiVersion": "example.com/v9", "kind": "Nothing", "metadata": {"name": "n"}}
    right = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "yes"}}
    outcomes = await target.load([wrong, unknown, right])
    assert outcomes["configmap/No"][0] == ImportOutcome.FAILED
    assert 'ConfigMap "No" is invalid: metadata.name' in outcomes["configmap/No"][1]
    assert outcomes["nothing.example.com/n"] == ("failed", "the server has no kind Nothing.example.com")
    assert outcomes["configmap/yes"] == ("created", "")


async def test_service_with_taken_address_gets_another(target):
    spec = {"clusterIP": "192.0.2.1", "clusterIPs": ["192.0.2.1"], "ports": [{"port": 80}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
    assert await target.load([service]) == {"service/s": ("created", "")}
    assert (await target.get("/api/v1/namespaces/default/services/s"))["spec"]["clusterIP"] != "192.0.2.1"


async def test_imported_volumes_and_claims_are_bound(target):
    reference = {"name": "c", "namespace": "default", "uid": "old"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {**spec, "claimRef": reference, "storageClassName": ""},
        "status": {"phase": "Bound"},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "v",
            "storageClassName": "",
        },
        "status": {"phase": "Bound"},
    }
    await target.load([claim, volume])
    await target.manager.step(30)
    there = await target.get("/api/v1/namespaces/default/persistentvolumeclaims/c")
    bound = await target.get("/api/v1/persistentvolumes/v")
    assert (there["status"]["phase"], bound["status"]["phase"]) == ("Bound", "Bound")
    assert bound["spec"]["claimRef"]["uid"] == there["metadata"]["uid"]


async def test_unexpected_error_of_one_object_ends_import(target):
    async def fail(request):
        if request.method == "POST" and request.target.endswith("/configmaps"):
            raise RuntimeError("a fault in the program")

    target.manager.transport.before_request = fail
    names = ("a", "b", "c")
    trees = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in names]
    with pytest.raises(RuntimeError, match="a fault in the program"):
        await target.load(trees)
