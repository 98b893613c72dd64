"""StatefulSets with the update strategy Recreate: the server and the controller with its feature gate."""

import pytest

from mockube.apimachinery.schema.minors import NEWEST
from mockube.controller_manager.config.features import Features
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from tests.support.controllers.running_manager import running_cluster

GATE = "StatefulSetRecreateStrategy"
SETS = "/apis/apps/v1/namespaces/default/statefulsets"
PODS = "/api/v1/namespaces/default/pods"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def stateful_set(**strategy):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}
    spec = {
        "replicas": 2,
        "serviceName": "web",
        "selector": {"matchLabels": labels},
        "template": template,
        "podManagementPolicy": "Parallel",
        "updateStrategy": strategy,
    }
    return {"metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
async def cluster():
    config = Config(features=Features(kubernetes_version=NEWEST, feature_gates=((GATE, True),)))
    flags = (f"--feature-gates={GATE}=true",)
    async with running_cluster(controllers=[STATEFUL_SET], config=config, flags=flags) as (
        server,
        manager,
    ):
        await server.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield server, manager


async def run_pods(server, manager):
    for pod in (await server.get(PODS)).body["items"]:
        await server.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": READY})
    await manager.settle()


async def images(server):
    items = (await server.get(PODS)).body["items"]
    return [pod["spec"]["containers"][0]["image"] for pod in items]


async def progress(server):
    conditions = (await server.get(f"{SETS}/web")).body["status"].get("conditions") or ()
    return [(one["type"], one["status"], one["reason"]) for one in conditions]


async def test_update_replaces_all_pods_together(cluster):
    server, manager = cluster
    assert (await server.post(SETS, stateful_set(type="Recreate"))).status == 201
    await manager.settle()
    await run_pods(server, manager)
    assert await images(server) == ["a:1", "a:1"]
    assert await progress(server) == []

    template = {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}
    await server.patch(f"{SETS}/web", {"spec": {"template": template}})
    await manager.settle()
    assert await images(server) == ["a:2", "a:2"]
    assert await progress(server) == [("Progressing", "True", "RecreateInProgress")]
    await run_pods(server, manager)
    assert await progress(server) == [("Progressing", "False", "RecreateCompleted")]


async def test_strategy_has_no_rolling_update(cluster):
    server, _ = cluster
    refused = await server.post(SETS, stateful_set(type="Recreate", rollingUpdate={"partition": 1}))
    assert refused.status == 422
    assert "only allowed for updateStrategy 'RollingUpdate'" in refused.body["message"]
    refused = await server.post(SETS, stateful_set(type="Odd"))
    assert "must be 'RollingUpdate', 'OnDelete', or 'Recreate'" in refused.body["message"]


async def test_strategy_is_refused_without_its_gate():
    async with running_cluster() as (server, _):
        refused = await server.post(SETS, stateful_set(type="Recreate"))
        assert refused.status == 422
        assert "must be 'RollingUpdate' or 'OnDelete'" in refused.body["message"]
