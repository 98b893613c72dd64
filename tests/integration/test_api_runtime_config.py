"""APIs that `--runtime-config` turns on and off; responses recorded from kube-apiserver 1.36.3 with api/all=true."""

from pathlib import Path

import orjson
import pytest

from mockube.apimachinery.schema import minors
from tests.support.server import apiserver

ANSWERS = [*map(orjson.loads, (Path(__file__).parent / "beta_versions.jsonl").read_bytes().splitlines())]
OF_EACH = {"uid", "resourceVersion", "creationTimestamp", "time", "timeAdded", "managedFields"}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def running_with(text, minor=minors.NEWEST):
    return apiserver.running(f"--kubernetes-version={minor}", f"--runtime-config={text}")


def comparable(value):
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items() if name not in OF_EACH}
    return [*map(comparable, value)] if isinstance(value, list) else value


async def test_beta_versions_respond_as_real_server():
    async with running_with("api/all=true", "1.36") as client:
        for step in ANSWERS:
            kind = {"Content_Type": step.get("type", "application/json")}
            answer = await client.send(step["method"], step["path"], step.get("body"), **kind)
            got = answer.status, orjson.dumps(comparable(answer.body))
            assert got == (step["status"], orjson.dumps(step["answer"])), step["path"]


async def test_discovery_orders_versions_by_stability():
    async with running_with("resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true") as client:
        groups = (await client.get("/apis", Accept=AGGREGATED)).body["items"]
        (versions,) = (one["versions"] for one in groups if one["metadata"]["name"] == "resource.k8s.io")
        assert [one["version"] for one in versions] == ["v1", "v1beta2", "v1beta1"]
        assert "apis/resource.k8s.io/v1beta1" in (await client.get("/openapi/v3")).body["paths"]


async def test_beta_version_is_warned_of():
    async with running_with("resource.k8s.io/v1beta2=true") as client:
        answer = await client.get("/apis/resource.k8s.io/v1beta2/deviceclasses")
        warning = "resource.k8s.io/v1beta2 DeviceClass is deprecated in v1.36+, unavailable in v1.39+"
        assert warning in answer.headers["Warning"]


async def test_disabled_apis_are_not_served():
    async with running_with("batch/v1=false,apps/v1/deployments=false,/v1/configmaps=false") as client:
        for path in (
            "/apis/batch/v1",
            "/apis/batch/v1/jobs",
            "/apis/apps/v1/deployments",
            "/api/v1/configmaps",
        ):
            assert (await client.get(path)).status == 404
        named = [one["name"] for one in (await client.get("/apis/apps/v1")).body["resources"]]
        assert "statefulsets" in named
        assert not any(name.startswith("deployments") for name in named)
        paths = (await client.get("/openapi/v3/apis/apps/v1")).body["paths"]
        assert not any("deployments" in path for path in paths)
        assert "batch" not in {one["name"] for one in (await client.get("/apis")).body["groups"]}


@pytest.mark.parametrize(
    ("off", "flags"),
    [
        ("discovery.k8s.io/v1", []),
        # With priority and fairness, kube-apiserver refuses to start without their kinds.
        ("flowcontrol.apiserver.k8s.io/v1", ["--enable-priority-and-fairness=false"]),
        ("networking.k8s.io/v1", []),
    ],
)
async def test_server_works_without_disabled_internal_apis(off, flags):
    async with apiserver.running(f"--runtime-config={off}=false", *flags) as client:
        service = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
        assert (await client.post("/api/v1/namespaces/default/services", service)).status == 201
        assert (await client.get(f"/apis/{off}")).status == 404
