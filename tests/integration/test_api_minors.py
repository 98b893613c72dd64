"""Servers of older minor versions: fields that they drop, refuse and default, and responses that differ."""

import pytest

from mockube.apiserver.wire.protobuf import envelope
from tests.support.server import apiserver

CORE, APPS = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/{}/prioritylevelconfigurations"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture(params=["1.31"])
async def client(request):
    async with apiserver.running(f"--kubernetes-version={request.param}") as client:
        await client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


def with_minor(minor):
    return pytest.mark.parametrize("client", [minor], indirect=True)


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def pod(name, **spec):
    spec = {"containers": [{"name": "a", "image": "a"}]} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def test_fields_of_later_minors_are_dropped_with_warning(client):
    answer = await client.post(f"{CORE}/pods", pod("a", hostnameOverride="b"))
    assert "hostnameOverride" not in answer.body["spec"]
    assert "spec.hostnameOverride" in answer.headers["Warning"]


async def test_fields_of_later_minors_are_refused_by_strict_validation(client):
    answer = await client.post(f"{CORE}/pods?fieldValidation=Strict", pod("a", hostnameOverride="b"))
    assert answer.status == 400
    assert 'strict decoding error: unknown field "spec.hostnameOverride"' in answer.body["message"]


async def test_fields_of_later_minors_are_ignored_in_protobuf(client):
    body = envelope.encode(pod("a", hostnameOverride="b"))
    answer = await client.send(
        "POST", f"{CORE}/pods?fieldValidation=Strict", body, **{"Content-Type": PROTOBUF}
    )
    assert answer.status == 201
    assert "hostnameOverride" not in answer.body["spec"]


async def test_gated_fields_are_dropped_silently(client):
    answer = await client.post(f"{CORE}/pods?fieldValidation=Strict", pod("a", hostUsers=False))
    assert (answer.status, "hostUsers" in answer.body["spec"]) == (201, False)


async def test_versions_and_subresources_of_later_minors_are_404(client):
    for path in ("/apis/resource.k8s.io/v1/deviceclasses", "/apis/networking.k8s.io/v1/servicecidrs"):
        assert (await client.get(path)).status == 404
    await client.post(f"{CORE}/pods", pod("a"))
    assert (await client.get(f"{CORE}/pods/a/resize")).status == 404


async def test_services_are_allocated_without_ip_address_api(client):
    made = [
        (
            await client.post(
                f"{CORE}/services", {"metadata": {"name": name}, "spec": {"ports": [{"port": 1}]}}
            )
        ).body
        for name in ("a", "b")
    ]
    assert len({service["spec"]["clusterIP"] for service in made}) == 2
    assert (await client.get("/apis/networking.k8s.io/v1/ipaddresses")).status == 404


async def test_unset_times_are_null(client):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("a")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    answer = await client.post(f"{APPS}/deployments", {"metadata": {"name": "a"}, "spec": spec})
    assert answer.body["spec"]["template"]["metadata"] == {"creationTimestamp": None, "labels": {"a": "b"}}


async def test_flow_control_v1beta3_is_served_until_its_removal(client):
    limited = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    old, new = LEVELS.format("v1beta3"), LEVELS.format("v1")
    answer = await client.post(old, {"metadata": {"name": "a"}, "spec": limited})
    assert answer.body["spec"]["limited"]["nominalConcurrencyShares"] == 30
    assert "is deprecated in v1.29+, unavailable in v1.32+" in str(answer.headers)
    zero = {"type": "Limited", "limited": limited["limited"] | {"nominalConcurrencyShares": 0}}
    await client.post(new, {"metadata": {"name": "b"}, "spec": zero})
    shown = (await client.get(f"{old}/b")).body
    assert "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares" in shown["metadata"]["annotations"]
    assert (await client.put(f"{old}/b", shown)).status == 200
    assert (await client.get(f"{new}/b")).body["spec"]["limited"]["nominalConcurrencyShares"] == 0


@with_minor("1.32")
async def test_removed_version_is_not_found(client):
    assert (await client.get(LEVELS.format("v1beta3"))).status == 404


@pytest.mark.parametrize(
    ("client", "found"),
    [("1.29", ["v2beta1"]), ("1.30", ["v2", "v2beta1"]), ("1.33", ["v2"])],
    indirect=["client"],
)
async def test_aggregated_discovery_has_versions_of_minor(client, found):
    shown = [
        version
        for version in ("v2", "v2beta1")
        if (await client.get("/apis", Accept=f"{AGGREGATED.format(version)},application/json")).body["kind"]
        == "APIGroupDiscoveryList"
    ]
    assert shown == found


async def test_version_is_that_of_minor(client):
    version = (await client.get("/version")).body
    assert (version["major"], version["minor"]) == ("1", "31")
    assert version["gitVersion"].startswith("v1.31.")
    assert "emulationMajor" not in version
