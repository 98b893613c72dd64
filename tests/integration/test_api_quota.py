"""Usage that quotas charge and refuse, over HTTP: as kube-apiserver does, and under concurrency."""

import asyncio
from collections import Counter
from pathlib import Path

import orjson
import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.admission.configurations import Configurations, LimitedResource
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.config.settings import AdmissionOptions
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.server import apiserver
from tests.support.server.definitions import WIDGETS, define, definition

CASES = [
    orjson.loads(line) for line in (Path(__file__).parent / "quota_answers.jsonl").read_bytes().splitlines()
]
RESIZES = [
    orjson.loads(line)
    for line in (Path(__file__).parent / "quota_of_resizes.jsonl").read_bytes().splitlines()
]
STRATEGIC = "strategic-merge-patch+json"
COMPUTE = {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
AMOUNTS = {
    *COMPUTE, "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "hugepages-2Mi",
    "requests.hugepages-2Mi", "requests.storage", "gold.storageclass.storage.k8s.io/requests.storage",
}  # fmt: skip
COUNTS = {
    "pods", "count/pods", "services", "services.loadbalancers", "services.nodeports", "count/services",
    "persistentvolumeclaims", "count/persistentvolumeclaims", "configmaps", "count/configmaps", "secrets",
    "count/leases.coordination.k8s.io", "count/deployments.apps", "requests.nvidia.com/gpu",
    "gold.storageclass.storage.k8s.io/persistentvolumeclaims", "count/resourceclaims.resource.k8s.io",
    "gpu.deviceclass.resource.k8s.io/devices", "requests.deviceclass.resource.kubernetes.io/gpu", "resourcequotas",
    "replicationcontrollers",
}  # fmt: skip
ALL = {**dict.fromkeys(COUNTS, "1000"), **dict.fromkeys(AMOUNTS, "1000Gi")}
LOOSE = {name: limit for name, limit in ALL.items() if name not in COMPUTE}
LIMITS = {"all": ALL, "loose": LOOSE, "zero": dict.fromkeys(LOOSE, "0")}
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


async def limit(client, name="q", *, path=QUOTAS, **spec):
    """Create a quota with zero usage in its status, as the quota controller would write it."""
    quota = {"metadata": {"name": name}, "spec": spec}
    await client.post(path, quota)
    quota["status"] = {"hard": spec["hard"], "used": dict.fromkeys(spec["hard"], "0")}
    answer = await client.put(f"{path}/{name}/status", quota)
    assert answer.status == 200, answer.body


async def quota_usage(client, name="q", *, path=QUOTAS):
    status = (await client.get(f"{path}/{name}")).body["status"]
    return {name: amount for name, amount in status["used"].items() if amount != "0"}


def config_map(name):
    return {"metadata": {"name": name}}


def group(case):
    return case.get("limits") or case["id"].partition("/")[0]


@pytest.mark.parametrize("name", sorted({group(case) for case in CASES}))
async def test_writes_are_charged_to_quota(client, name):
    for priority, value in {"admhigh": 5, "admlow": 1}.items():
        priority_class = {"metadata": {"name": priority}, "value": value}
        await client.post("/apis/scheduling.k8s.io/v1/priorityclasses", priority_class)
    device_class = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    await client.post("/apis/resource.k8s.io/v1/deviceclasses", device_class)
    for number, case in enumerate(CASES):
        if group(case) == name:
            await client.post("/api/v1/namespaces", {"metadata": {"name": f"n{number}"}})
            account = {"metadata": {"name": "default"}}
            await client.post(f"/api/v1/namespaces/n{number}/serviceaccounts", account)
            await check(client, case, f"n{number}")


async def check(client, case, namespace):
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    hard = LIMITS.get(case.get("limits"), {"pods": "10"})
    await limit(client, path=quotas, hard=hard, **case.get("scopes", {}))
    version = case["apiVersion"]
    path = f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}/{case['resource']}"
    for number, step in enumerate(case["writes"]):
        if number:
            answer = await client.patch(f"{path}/x", step["write"])
        else:
            answer = await client.post(path, {"metadata": {"name": "x"}, **step["write"]})
        assert (answer.status, answer.body.get("message")) == (step["status"], step["message"]), case["id"]
        assert await quota_usage(client, path=quotas) == step["used"], case["id"]


@pytest.mark.parametrize("minor", sorted({case["minor"] for case in RESIZES}))
async def test_resizes_are_charged_as_in_minor(minor):
    """A resize is charged for what the largest size of the pod grows by; recorded from kube-apiserver."""
    async with apiserver.running(f"--kubernetes-version={minor}") as client:
        for number, case in enumerate(RESIZES):
            if case["minor"] == minor:
                namespace = f"/api/v1/namespaces/n{number}"
                await client.post("/api/v1/namespaces", {"metadata": {"name": f"n{number}"}})
                await client.post(f"{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
                await check_resize(client, case, namespace)


async def check_resize(client, case, namespace):
    pod = (await client.post(f"{namespace}/pods", {"metadata": {"name": "x"}, "spec": case["spec"]})).body
    status = {**pod["status"], **case["status"]}
    answer = await client.put(f"{namespace}/pods/x/status", {**pod, "status": status})
    assert answer.status == 200, answer.body
    hard = {f"{kind}.{name}": "1000Gi" for kind in ("requests", "limits") for name in ("cpu", "memory")}
    await limit(client, path=f"{namespace}/resourcequotas", hard=hard)
    answer = await client.patch(f"{namespace}/pods/x/resize", {"spec": case["resize"]}, kind=STRATEGIC)
    assert answer.status == 200, answer.body
    assert await quota_usage(client, path=f"{namespace}/resourcequotas") == case["used"], case


async def test_concurrent_writers_do_not_exceed_quota(client):
    await limit(client, hard={"configmaps": "50"})
    await limit(client, "other", hard={"count/configmaps": "70"})
    answers = await asyncio.gather(*(client.post(CONFIG_MAPS, config_map(f"c{n}")) for n in range(200)))
    assert Counter(answer.status for answer in answers) == {201: 50, 403: 150}
    assert await quota_usage(client) == {"configmaps": "50"}
    assert await quota_usage(client, "other") == {"count/configmaps": "50"}
    assert len((await client.get(CONFIG_MAPS)).body["items"]) == 50


async def test_writers_of_two_servers_do_not_exceed_quota():
    store = MemoryStore(clock=RealClock())
    async with apiserver.running(kv=store) as first, apiserver.running(kv=store) as second:
        await limit(first, hard={"configmaps": "20"})
        writes = [
            client.post(CONFIG_MAPS, config_map(f"{name}-{n}"))
            for n in range(40)
            for name, client in (("first", first), ("second", second))
        ]
        answers = await asyncio.gather(*writes)
        assert Counter(answer.status for answer in answers)[201] == 20
        assert await quota_usage(second) == {"configmaps": "20"}


async def test_dry_run_is_checked_but_not_charged(client):
    await limit(client, hard={"configmaps": "1"})
    assert (await client.post(f"{CONFIG_MAPS}?dryRun=All", config_map("a"))).status == 201
    assert await quota_usage(client) == {}
    await client.post(CONFIG_MAPS, config_map("a"))
    refused = await client.post(f"{CONFIG_MAPS}?dryRun=All", config_map("b"))
    assert refused.body["message"] == (
        'configmaps "b" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, '
        "limited: configmaps=1"
    )


async def test_uncounted_quota_limits_nothing_and_quota_without_usage_refuses(client):
    await client.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}})
    assert (await client.post(CONFIG_MAPS, config_map("a"))).status == 201
    status = {"status": {"hard": {"configmaps": "0"}}}
    await client.patch(f"{QUOTAS}/q/status", status)
    refused = await client.post(CONFIG_MAPS, config_map("b"))
    assert refused.body["message"] == (
        'configmaps "b" is forbidden: status unknown for quota: q, resources: configmaps'
    )


async def test_server_manages_quota_status(client):
    await limit(client, hard={"configmaps": "1"})
    await client.post(CONFIG_MAPS, config_map("a"))
    managers = (await client.get(f"{QUOTAS}/q")).body["metadata"]["managedFields"]
    (entry,) = [one for one in managers if one["manager"] == "kube-apiserver"]
    assert (entry["operation"], entry["subresource"]) == ("Update", "status")
    assert entry["fieldsV1"] == {"f:status": {"f:used": {"f:configmaps": {}}}}


async def test_custom_objects_are_counted(client):
    await define(client, definition())
    await limit(client, hard={"count/widgets.example.com": "1"})
    widget = {"apiVersion": "example.com/v1", "kind": "Widget"}
    assert (await client.post(WIDGETS, widget | config_map("a"))).status == 201
    assert (await client.post(WIDGETS, widget | config_map("b"))).status == 403


# --- resources that may be used only where a quota limits them

HIGH = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
GOLD = "gold.storageclass.storage.k8s.io/requests.storage"
DEPLOYMENTS = GroupResource("apps", "deployments")
LIMITED = [
    LimitedResource(resource=GroupResource("", "pods"), scopes=[HIGH]),
    LimitedResource(resource=GroupResource("", "persistentvolumeclaims"), contains=[GOLD[4:]]),
    LimitedResource(resource=GroupResource("", "services"), contains=["services.loadbalancers"]),
    LimitedResource(resource=DEPLOYMENTS, contains=["count/deployments"]),
]
NAMESPACE = "/api/v1/namespaces/default"
CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def high(name):
    spec = {"containers": [{"name": "c", "image": "i"}], "priorityClassName": "high"}
    return {"metadata": {"name": name}, "spec": spec}


def service(name, kind):
    return {"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}]}}


def claim(name, **spec):
    return {"metadata": {"name": name}, "spec": CLAIM_SPEC | spec}


@pytest.fixture
async def client_with_limits():
    configurations = Configurations(limited_resources=LIMITED)
    admission = AdmissionOptions(admission_control_config_file=configurations)
    async with apiserver.running(config=Config(admission=admission)) as client:
        await client.post(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
        await client.post(
            "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1}
        )
        await client.post(
            "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "gold"}, "provisioner": "x"}
        )
        yield client


async def status_and_message(answer):
    answer = await answer
    return answer.status, answer.body.get("message", "")


async def test_limited_resource_needs_quota(client_with_limits):
    """As kube-apiserver 1.36.3 answered with this configuration."""
    consume = "is forbidden: insufficient quota to consume:"
    assert await status_and_message(client_with_limits.post(f"{NAMESPACE}/pods", high("a"))) == (
        500,
        "insufficient quota to match these scopes: [{PriorityClass In [high]}]",
    )
    assert await status_and_message(
        client_with_limits.post(f"{NAMESPACE}/persistentvolumeclaims", claim("c", storageClassName="gold"))
    ) == (
        403,
        f'persistentvolumeclaims "c" {consume} {GOLD}',
    )
    assert await status_and_message(
        client_with_limits.post(f"{NAMESPACE}/services", service("l", "LoadBalancer"))
    ) == (
        403,
        f'services "l" {consume} services.loadbalancers',
    )
    assert (
        await client_with_limits.post(f"{NAMESPACE}/persistentvolumeclaims", claim("other"))
    ).status == 201
    assert (await client_with_limits.post(f"{NAMESPACE}/services", service("s", "ClusterIP"))).status == 201
    assert await status_and_message(
        client_with_limits.patch(
            f"{NAMESPACE}/services/s", {"spec": {"type": "LoadBalancer"}}, kind="merge-patch+json"
        )
    ) == (
        403,
        f'services "s" {consume} services.loadbalancers',
    )


async def test_covering_quota_allows_limited_resource(client_with_limits):
    await limit(client_with_limits, "high", hard={"pods": "5"}, scopeSelector={"matchExpressions": [HIGH]})
    await limit(client_with_limits, "gold", hard={GOLD: "5Gi"})
    assert (await client_with_limits.post(f"{NAMESPACE}/pods", high("a"))).status == 201
    gold = claim("c", storageClassName="gold")
    assert (await client_with_limits.post(f"{NAMESPACE}/persistentvolumeclaims", gold)).status == 201
    assert await quota_usage(client_with_limits, "gold") == {GOLD: "1Gi"}
