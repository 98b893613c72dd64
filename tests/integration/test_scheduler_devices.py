"""Devices for claims and extended resources with a real server: what the scheduler writes, and what it withdraws."""

import pytest

from mockube.apimachinery.status import Forbidden
from tests.support.controllers.scheduling import NODES, PODS, scheduling

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
GPU = "example.com/gpu"
ANNOTATION = {"resource.kubernetes.io/extended-resource-claim": "true"}


@pytest.fixture
async def cluster():
    async with scheduling() as scenario:
        await scenario.node("a")
        await scenario.post(
            f"{GROUP}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
        )
        pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": "g0"}, {"name": "g1"}]
        spec = {"driver": "gpu.example.com", "nodeName": "a", "pool": pool, "devices": devices}
        await scenario.post(f"{GROUP}/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
        yield scenario


async def claims(cluster):
    return {one["metadata"]["name"]: one for one in (await cluster.server.get(CLAIMS)).body["items"]}


async def new_claim(cluster, name="own", **metadata):
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    body = {"metadata": {"name": name, **metadata}, "spec": {"devices": {"requests": [request]}}}
    return await cluster.post(CLAIMS, body)


def asking(*claim_names, gpus=1, **spec):
    limits = {GPU: str(gpus)} if gpus else {}
    own = [{"name": name, "resourceClaimName": name} for name in claim_names]
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    return {"containers": [container], "resourceClaims": own, **spec}


async def new_pod(cluster, name, spec):
    created = await cluster.post(PODS, {"metadata": {"name": name}, "spec": spec})
    await cluster.manager.settle()
    return created


async def condition(cluster, name):
    pod = (await cluster.server.get(f"{PODS}/{name}")).body
    (found,) = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
    return found["message"]


async def test_devices_of_refused_binding_are_released(cluster):
    refusals = ["no pods today"]

    async def refuse(request):
        if request.target.endswith("/binding") and refusals:
            raise Forbidden(refusals.pop())

    cluster.manager.transport.before_request = refuse
    await new_claim(cluster)
    await new_pod(cluster, "web", asking("own"))
    assert await cluster.place("web") is None
    (own,) = (await claims(cluster)).values()
    assert "reservedFor" not in own["status"]
    assert own["status"]["allocation"]["devices"]["results"][0]["device"] == "g0"
    await cluster.manager.step(2)
    assert await cluster.place("web") == "a"
    pod = (await cluster.server.get(f"{PODS}/web")).body
    name = pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    stored = await claims(cluster)
    devices = [
        stored[one]["status"]["allocation"]["devices"]["results"][0]["device"] for one in ("own", name)
    ]
    assert devices == ["g0", "g1"]


PRE_BIND = 'running PreBind plugin "DynamicResources": '


@pytest.mark.parametrize(
    ("method", "end", "words"),
    [
        ("POST", "/resourceclaims", f"{PRE_BIND}create claim for extended resources default/: "),
        ("PUT", "", f"{PRE_BIND}add finalizer to claim default/"),
        ("PUT", "/status", f"{PRE_BIND}add allocation and reservation to claim default/"),
        ("PATCH", "/web/status", f"{PRE_BIND}update pod default/web ExtendedResourceClaimStatus: "),
        ("POST", "/binding", 'running Bind plugin "DefaultBinder": '),
    ],
)
async def test_refused_write_leaves_no_claim(cluster, method, end, words):
    refusals = ["not today"]

    async def refuse(request):
        if request.method == method and request.target.endswith(end) and refusals:
            raise Forbidden(refusals.pop())

    cluster.manager.transport.before_request = refuse
    await new_pod(cluster, "web", asking(gpus=2))
    message = await condition(cluster, "web")
    assert message.startswith(words)
    assert message.endswith(": not today")
    assert await claims(cluster) == {}
    await cluster.manager.step(2)
    assert await cluster.place("web") == "a"
    pod = (await cluster.server.get(f"{PODS}/web")).body
    assert [*await claims(cluster)] == [pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"]]


async def test_devices_of_unwritten_claim_are_free(cluster):
    refusals = ["no claims today"]

    async def refuse(request):
        if request.method == "POST" and request.target.endswith("/resourceclaims") and refusals:
            raise Forbidden(refusals.pop())

    cluster.manager.transport.before_request = refuse
    await new_pod(cluster, "web", asking(gpus=2))
    assert await condition(cluster, "web") == (
        'running PreBind plugin "DynamicResources": create claim for extended resources default/: no claims today'
    )
    await new_pod(cluster, "other", asking(gpus=2))
    assert await cluster.place("other") == "a"


async def test_pod_with_claims_needs_no_devices_that_node_has(cluster):
    allocatable = {"cpu": "4", "memory": "16Gi", "pods": "9", GPU: "1"}
    status = {"status": {"capacity": allocatable, "allocatable": allocatable}}
    await cluster.server.patch(f"{NODES}/a/status", status)
    await cluster.manager.settle()
    await new_pod(cluster, "alone", asking())
    assert (await cluster.place("alone"), await claims(cluster)) == ("a", {})
    await cluster.server.delete(f"{PODS}/alone", {"gracePeriodSeconds": 0})
    # Upstream creates a claim that no container uses, which cannot be written into the pod.
    await new_claim(cluster)
    await new_pod(cluster, "web", asking("own"))
    assert await condition(cluster, "web") == (
        'running PreBind plugin "DynamicResources": nil or empty request mappings, '
        "no update of pod default/web ExtendedResourceClaimStatus"
    )
    assert [*await claims(cluster)] == ["own"]


async def test_claim_of_earlier_attempt_is_replaced(cluster):
    gates = [{"name": "example.com/wait"}]
    created = await new_pod(cluster, "web", asking(schedulingGates=gates))
    uid = created["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": True}
    finalizers = ["resource.kubernetes.io/delete-protection"]
    await new_claim(cluster, "old", annotations=ANNOTATION, ownerReferences=[owner], finalizers=finalizers)
    await cluster.server.patch(f"{PODS}/web", {"spec": {"schedulingGates": None}})
    await cluster.manager.settle()
    (note,) = {event["note"] for event in await cluster.events("FailedScheduling")}
    assert "1 cannot schedule extended resource claim. deletion of ResourceClaim completed" in note
    await cluster.manager.step(2)
    assert await cluster.place("web") == "a"
    assert "old" not in await claims(cluster)
