"""A controller whose kinds are defined while the manager runs starts then, and misses no object."""

import asyncio

import yaml

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.control.runnable import REFRESH_SECONDS
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from mockube.packs.kruise.controllers.uniteddeployment.controller import UNITED_DEPLOYMENT
from mockube.packs.kruise.pack import PACK
from tests.packs.kruise.support.united_scenarios import UNITED
from tests.packs.kruise.support.uniteddeployments import united
from tests.support.controllers.running_manager import running_cluster
from tests.support.event_loop import WAIT_TIMEOUT

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
# Without a ServiceAccount the creation of a pod would wait on the server for the clock.
CONTROLLERS = [UNITED_DEPLOYMENT, DEPLOYMENT, REPLICA_SET, SERVICE_ACCOUNT]


async def until_established(server, definition):
    """The server establishes definitions after it has stored them, partly in a thread."""
    path, conditions = f"{DEFINITIONS}/{definition['metadata']['name']}", {}
    async with asyncio.timeout(WAIT_TIMEOUT):
        while conditions.get("Established") != "True":
            found = (await server.get(path)).body["status"].get("conditions") or ()
            conditions = {condition["type"]: condition["status"] for condition in found}


async def test_controllers_start_when_their_kinds_are_defined():
    clock = SteppedClock()
    async with running_cluster(clock=clock, controllers=CONTROLLERS) as (server, manager):
        first, *others = [yaml.safe_load(text) for text in PACK.definitions()]
        for definition in others:
            assert (await server.post(DEFINITIONS, definition)).status == 201
            await until_established(server, definition)
        await manager.step(REFRESH_SECONDS)
        assert (await server.post(DEFINITIONS, first)).status == 201
        await until_established(server, first)
        await manager.settle()
        assert (await server.post(UNITED, united())).status == 201
        await manager.settle()
        assert (await server.get(DEPLOYMENTS)).body["items"] == []
        await manager.step(REFRESH_SECONDS)
        assert len((await server.get(DEPLOYMENTS)).body["items"]) == 3
        status = (await server.get(f"{UNITED}/foo")).body["status"]
        assert status["subsetReplicas"] == {"a": 1, "b": 1, "c": 1}
