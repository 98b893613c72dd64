"""A stored value that cannot be decoded is an error for that object only, and can be deleted by name."""

import pytest

from mockube.etcd.kv import Put
from tests.support.event_loop import next_item
from tests.support.server.apiserver import running
from tests.support.server.foreign_values import MISSHAPEN, VALUES, text

MAPS = "/api/v1/namespaces/default/configmaps"
KEY = b"/registry/configmaps/default/bad"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
FORMS = ("application/json", TABLE, PARTIAL, PROTOBUF, "application/yaml")


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def write(client, value, key=KEY):
    """Write a value to the store, as another program would."""
    backend = client.server.registry
    result = await backend.kv.put(Put(key=key, value=value))
    await backend.watch_cache.wait_reached(result.revision)


async def names(client, query=""):
    answer = await client.get(MAPS + query)
    assert answer.status == 200, answer.body
    return [item["metadata"]["name"] for item in answer.body["items"]]


async def metric(client):
    page = (await client.get("/metrics")).data.decode()
    found = [line for line in page.splitlines() if line.startswith("apiserver_storage_decode_errors_total")]
    return [float(line.split()[-1]) for line in found if 'resource="configmaps"' in line]


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_unreadable_object_does_not_affect_others(client, caplog, value):
    await client.post(MAPS, {"metadata": {"name": "good", "labels": {"a": "b"}}})
    await write(client, value)
    await client.post(MAPS, {"metadata": {"name": "later", "labels": {"a": "b"}}})
    for query in (
        "",
        "?labelSelector=a%3Db",
        "?limit=1",
        "?fieldSelector=metadata.name%3Dgood",
        "?resourceVersion=0",
    ):
        assert "bad" not in await names(client, query)
        assert "good" in await names(client, query)
    for form in FORMS:
        answer = await client.get(MAPS, Accept=form)
        assert answer.status == 200
        assert "/registry/configmaps/default/bad cannot be read" in answer.headers["Warning"]
    assert (await client.get(f"{MAPS}/good")).status == 200
    assert await metric(client) == [1.0]
    named = [record for record in caplog.records if "/registry/configmaps/default/bad" in record.getMessage()]
    assert [record.exc_info for record in named] == [None]
    assert (await client.get("/readyz")).data == b"ok"


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_get_of_unreadable_object_fails_and_delete_by_name_works(client, value):
    await write(client, value)
    got = await client.get(f"{MAPS}/bad")
    assert (got.status, got.body["reason"]) == (500, "InternalError")
    assert got.body["message"].startswith(
        "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /registry/configmaps/default/bad, "
        "ResourceVersion: 0, AdditionalErrorMsg: "
    )
    assert (await client.patch(f"{MAPS}/bad", {"data": {"a": "b"}})).status == 500
    assert (await client.post(MAPS, {"metadata": {"name": "bad"}})).body["reason"] == "AlreadyExists"
    by_uid = await client.delete(f"{MAPS}/bad", {"preconditions": {"uid": "u"}})
    assert by_uid.status == 500
    assert (await client.delete(f"{MAPS}/bad?dryRun=All")).status == 200
    assert (await client.get(f"{MAPS}/bad")).status == 500
    deleted = await client.delete(f"{MAPS}/bad")
    assert (deleted.status, deleted.body["status"]) == (200, "Success")
    assert (await client.get(f"{MAPS}/bad")).status == 404
    assert (await client.post(MAPS, {"metadata": {"name": "bad"}})).status == 201


async def test_watch_sees_unreadable_object_deleted_and_added(client):
    await client.post(MAPS, {"metadata": {"name": "bad"}})
    revision = (await client.get(MAPS)).body["metadata"]["resourceVersion"]
    async with client.watch(f"{MAPS}?watch=true&resourceVersion={revision}") as events:
        await write(client, VALUES["labels that are a list"])
        await write(client, VALUES["no JSON"])
        await write(client, text())
        await client.delete(f"{MAPS}/bad")
        seen = [(await next_item(events))["type"] for _ in range(3)]
    assert seen == ["DELETED", "ADDED", "DELETED"]
    assert not client.server.registry.watch_cache.unreadable


async def test_unreadable_object_is_handled_at_start(client):
    await write(client, VALUES["no JSON"])
    async with running(kv=client.server.registry.kv) as second:
        assert "bad" not in await names(second)
        assert (await second.get(f"{MAPS}/bad")).status == 500
        assert await metric(second) == [1.0]


async def test_deletecollection_and_namespace_remove_unreadable_object(client):
    await write(client, VALUES["no JSON"])
    await client.post(MAPS, {"metadata": {"name": "good", "labels": {"a": "b"}}})
    assert (await client.delete(f"{MAPS}?labelSelector=a%3Db")).status == 200
    assert (await client.get(f"{MAPS}/bad")).status == 500
    assert (await client.delete(MAPS)).status == 200
    assert (await client.get(f"{MAPS}/bad")).status == 404


@pytest.mark.parametrize("value", MISSHAPEN.values(), ids=MISSHAPEN)
async def test_unreadable_object_is_omitted_in_every_format(client, value):
    await client.post(MAPS, {"metadata": {"name": "good"}})
    revision = (await client.get(MAPS)).body["metadata"]["resourceVersion"]
    await write(client, value)
    for form in FORMS:
        assert (await client.get(MAPS, Accept=form)).status == 200
        async with client.session.get(
            f"{client.url}{MAPS}?watch=true&resourceVersion={revision}&timeoutSeconds=1",
            headers=client.credentials | {"Accept": form},
        ) as answer:
            assert answer.status == (406 if form.endswith("yaml") else 200)
    for form in (TABLE, PROTOBUF):
        assert (await client.get(f"{MAPS}/bad", Accept=form)).status in (200, 500)
    assert (await client.delete(f"{MAPS}/bad")).status == 200
    assert await names(client) == ["good"]


@pytest.mark.parametrize("spec", [[], "x", 7, {"containers": 3}, {"containers": [7]}, None])
async def test_pod_with_wrong_types_can_be_listed_and_deleted(client, spec):
    """The invalid value is used for its columns, its selectable fields and its grace period."""
    pods = "/api/v1/namespaces/default/pods"
    value = text(kind="Pod", spec=spec, status=["x"])
    await write(client, value, b"/registry/pods/default/bad")
    for form in FORMS:
        assert (await client.get(pods, Accept=form)).status == 200
    assert (await client.get(f"{pods}?fieldSelector=spec.nodeName%3Dx,status.phase%3DRunning")).body[
        "items"
    ] == []
    assert (await client.delete(f"{pods}/bad")).status == 200
    assert (await client.get(f"{pods}/bad")).status == 404


async def test_unconvertible_object_is_omitted(client):
    scalers = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    value = text(kind="HorizontalPodAutoscaler", apiVersion="autoscaling/v2", spec=[7], status="x")
    await write(client, value, b"/registry/horizontalpodautoscalers/default/bad")
    assert (await client.get(scalers)).status == 200
    assert (await client.get(f"{scalers}/bad")).status in (200, 500)
    assert (await client.delete(f"{scalers}/bad")).status == 200
    assert (await client.get(f"{scalers}/bad")).status == 404


SERVICES = "/api/v1/namespaces/default/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
SERVICE_KEY = b"/registry/services/specs/default/"


async def node_port(client, name, **spec):
    ports = [{"port": 80, **({"nodePort": spec.pop("port")} if "port" in spec else {})}]
    return await client.post(
        SERVICES, {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports, **spec}}
    )


async def addresses(client):
    return {item["metadata"]["name"] for item in (await client.get(ADDRESSES)).body["items"]}


def ip_and_port(answer):
    spec = answer.body["spec"]
    return spec["clusterIP"], spec["ports"][0]["nodePort"]


async def write_unreadable(client, *found):
    for name in found:
        await write(client, b'{"kind":"Service"', SERVICE_KEY + name)


@pytest.mark.parametrize("path", [f"{SERVICES}/bad", SERVICES], ids=["by name", "with all others"])
async def test_allocations_of_unreadable_service_are_released_on_delete(client, path):
    ip, port = ip_and_port(await node_port(client, "bad"))
    await write_unreadable(client, b"bad")
    assert ip in await addresses(client)
    assert (await node_port(client, "new", clusterIP=ip, port=port)).status == 422
    assert (await client.delete(f"{path}?dryRun=All")).status == 200
    assert ip in await addresses(client)
    assert (await client.delete(path)).status == 200
    assert ip not in await addresses(client)
    assert ip_and_port(await node_port(client, "new", clusterIP=ip, port=port)) == (ip, port)


async def test_allocations_of_other_services_are_kept(client):
    ip, port = ip_and_port(await node_port(client, "good"))
    ip_and_port(await node_port(client, "bad"))
    await write_unreadable(client, b"bad")
    assert (await client.delete(f"{SERVICES}/bad")).status == 200
    assert ip in await addresses(client)
    refused = await node_port(client, "new", port=port)
    assert (refused.status, refused.body["details"]["causes"][0]["field"]) == (422, "spec.ports[0].nodePort")


async def test_node_port_release_waits_for_other_unreadable_services(client):
    """While two services are unreadable, the owner of each node port is unknown."""
    _, first = ip_and_port(await node_port(client, "bad"))
    other_ip, other = ip_and_port(await node_port(client, "worse"))
    await write_unreadable(client, b"bad", b"worse")
    assert (await client.delete(f"{SERVICES}/bad")).status == 200
    assert other_ip in await addresses(client)
    assert (await node_port(client, "new", port=other)).status == 422
    assert (await client.delete(f"{SERVICES}/worse")).status == 200
    assert other_ip not in await addresses(client)
    for name, port in (("a", first), ("b", other)):
        assert ip_and_port(await node_port(client, name, port=port))[1] == port


async def test_object_without_uid_is_served_and_updated(client):
    await write(
        client, b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"bad","namespace":"default"}}'
    )
    assert await names(client) == ["bad"]
    answer = await client.get(f"{MAPS}/bad")
    assert (answer.status, answer.body["metadata"]["uid"]) == (200, "")
    changed = answer.body | {"data": {"a": "b"}}
    assert (await client.put(f"{MAPS}/bad", changed)).body["data"] == {"a": "b"}
    assert (await client.delete(f"{MAPS}/bad")).status == 200
    assert await names(client) == []
