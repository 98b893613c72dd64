"""OpenKruise's workloads in the versions v1alpha1 and v1beta1, between which this server converts them."""

import pytest

from mockube.apiserver.packs.definitions import definition_trees
from tests.packs.kruise.support.kruise import (
    ALPHA_STATEFUL,
    BETA_CLONES,
    BETA_UNITED,
    CLONES,
    STATEFUL,
    UNITED,
    clone_set,
    stateful_set,
    subset,
    united_deployment,
    workload,
)
from tests.support.server import apiserver
from tests.support.server.definitions import define


@pytest.fixture
async def client():
    async with apiserver.running("--packs=kruise") as client:
        yield client


async def test_empty_in_place_strategy_exists_only_in_v1beta1(client):
    """As with OpenKruise, the conversion from the stored version drops it."""
    tree = clone_set(updateStrategy={"type": "InPlaceIfPossible"})
    alpha = (await client.post(CLONES, tree)).body["spec"]["updateStrategy"]
    assert (alpha["type"], "inPlaceUpdateStrategy" in alpha) == ("InPlaceIfPossible", False)
    beta = (await client.get(f"{BETA_CLONES}/foo")).body["spec"]["updateStrategy"]["rollingUpdate"]
    assert (beta["podUpdatePolicy"], beta["inPlaceUpdateStrategy"]) == ("InPlaceIfPossible", {})


async def test_server_without_pack_refuses_version_that_is_not_stored():
    async with apiserver.running() as client:
        for tree in definition_trees("kruise"):
            await define(client, tree)
        refused = await client.post(CLONES, clone_set())
        assert refused.status == 500
        assert refused.body["message"] == (
            "conversion webhook for apps.kruise.io/v1alpha1, Kind=CloneSet failed: "
            'Post "https://kruise-webhook-service.kruise-system.svc:443/convert?timeout=30s": '
            'service "kruise-webhook-service" not found'
        )
        stored = clone_set() | {"apiVersion": "apps.kruise.io/v1beta1"}
        assert (await client.post(BETA_CLONES, stored)).status == 201


async def test_stateful_set_of_v1alpha1_is_defaulted_and_loses_fields_of_v1beta1(client):
    beta = stateful_set(reserveOrdinals=[1], scaleStrategy={"maxUnavailable": 1})
    assert (await client.post(STATEFUL, beta)).status == 201
    alpha = (await client.get(f"{ALPHA_STATEFUL}/foo")).body
    assert not alpha["spec"].keys() & {
        "reserveOrdinals",
        "scaleStrategy",
        "persistentVolumeClaimRetentionPolicy",
    }
    assert alpha["status"]["availableReplicas"] == 0
    alpha["spec"]["replicas"] = 3
    assert (await client.put(f"{ALPHA_STATEFUL}/foo", alpha)).status == 200
    stored = (await client.get(f"{STATEFUL}/foo")).body["spec"]
    assert (stored["replicas"], stored.keys() & {"reserveOrdinals", "scaleStrategy"}) == (3, set())

    new = stateful_set(name="new") | {"apiVersion": "apps.kruise.io/v1alpha1"}
    created = (await client.post(ALPHA_STATEFUL, new)).body["spec"]
    assert created["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] == "ReCreate"
    assert "volumeClaimUpdateStrategy" not in created
    refused = await client.patch(f"{ALPHA_STATEFUL}/new", {"spec": {"serviceName": "other"}})
    assert refused.status == 422


async def test_clone_set_of_v1beta1_is_defaulted(client):
    created = await client.post(BETA_CLONES, clone_set() | {"apiVersion": "apps.kruise.io/v1beta1"})
    assert created.body["spec"]["scaleStrategy"] == {"enablePVCReuse": False}
    assert created.body["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {
            "podUpdatePolicy": "ReCreate",
            "partition": 0,
            "maxUnavailable": "20%",
            "maxSurge": 0,
        },
    }
    alpha = (await client.get(f"{CLONES}/foo")).body["spec"]
    assert alpha["scaleStrategy"] == {"disablePVCReuse": True}
    assert alpha["updateStrategy"]["type"] == "ReCreate"


async def test_exclusion_of_pods_preparing_delete_is_a_label_of_v1alpha1(client):
    name = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"
    tree = clone_set(scaleStrategy={"excludePreparingDelete": True}) | {
        "apiVersion": "apps.kruise.io/v1beta1"
    }
    created = (await client.post(BETA_CLONES, tree)).body
    assert "labels" not in created["metadata"]
    alpha = (await client.get(f"{CLONES}/foo")).body
    assert alpha["metadata"]["labels"] == {name: "true"}
    assert "excludePreparingDelete" not in alpha["spec"]["scaleStrategy"]
    assert (await client.put(f"{CLONES}/foo", alpha)).status == 200
    stored = (await client.get(f"{BETA_CLONES}/foo")).body["spec"]
    assert stored["scaleStrategy"]["excludePreparingDelete"] is True
    reset = {"spec": {"scaleStrategy": {"excludePreparingDelete": False}}}
    assert (await client.patch(f"{BETA_CLONES}/foo", reset)).status == 200
    assert name not in (await client.get(f"{CLONES}/foo")).body["metadata"].get("labels", {})


async def test_clone_set_template_may_have_the_form_of_either_version(client):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}
    template = {"cloneSetTemplate": workload(updateStrategy=strategy)}
    tree = united_deployment(subset("a"))
    tree["spec"]["template"] = template
    created = (await client.post(UNITED, tree)).body["spec"]["template"]["cloneSetTemplate"]["spec"]
    assert created["updateStrategy"] == {"type": "InPlaceOnly"}
    beta = (await client.get(f"{BETA_UNITED}/foo")).body["spec"]["template"]["cloneSetTemplate"]["spec"]
    assert beta["updateStrategy"] == strategy


async def test_status_of_united_deployment_is_converted(client):
    await client.post(UNITED, united_deployment(subset("a")))
    status = {"replicas": 2, "updatedReplicas": 1, "currentRevision": "r", "subsetReplicas": {"a": 2}}
    update = {"updateStatus": {"updatedRevision": "s", "currentPartitions": {"a": 1}}}
    body = (await client.get(f"{UNITED}/foo")).body | {"status": status | update}
    assert (await client.put(f"{UNITED}/foo/status", body)).body["status"]["subsetReplicas"] == {"a": 2}
    beta = (await client.get(f"{BETA_UNITED}/foo")).body["status"]
    assert beta["subsetStatuses"] == [{"name": "a", "replicas": 2, "partition": 1}]
    assert (beta["updatedRevision"], "subsetReplicas" in beta) == ("s", False)


async def test_watch_of_other_version_is_converted(client):
    await client.post(BETA_CLONES, clone_set() | {"apiVersion": "apps.kruise.io/v1beta1"})
    listed = (await client.get(CLONES)).body["items"][0]
    assert (listed["apiVersion"], listed["spec"]["updateStrategy"]["type"]) == (
        "apps.kruise.io/v1alpha1",
        "ReCreate",
    )
