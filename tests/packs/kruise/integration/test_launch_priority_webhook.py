"""Launch priorities of a pod's containers, as OpenKruise's webhook for pods applies them."""

import pytest

from tests.support.server import apiserver

PODS = "/api/v1/namespaces/default/pods"
NO_ACCOUNTS = "--disable-admission-plugins=ServiceAccount"
PRIORITY = "KRUISE_CONTAINER_PRIORITY"


@pytest.fixture
async def client():
    async with apiserver.running("--packs=kruise", NO_ACCOUNTS) as client:
        yield client


def pod_with_priorities(*values, metadata=None):
    containers = [
        {"name": f"c{number}", "image": "app"}
        | ({} if value is None else {"env": [{"name": PRIORITY, "value": value}]})
        for number, value in enumerate(values)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata or {"name": "web"},
        "spec": {"containers": containers, "automountServiceAccountToken": False},
    }


def barriers_of(pod):
    """Return the name and the key of the barrier for which each container waits, or None."""
    selectors = [
        [
            variable["valueFrom"]["configMapKeyRef"]
            for variable in container.get("env", ())
            if variable["name"] == "KRUISE_CONTAINER_BARRIER"
        ]
        for container in pod["spec"]["containers"]
    ]
    return [(found[0]["name"], found[0]["key"]) if found else None for found in selectors]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(("0", "10"), ["p_0", "p_10"], id="two"),
        pytest.param((None, "-3"), ["p_0", "p_-3"], id="none counts as 0"),
        pytest.param((None, None), None, id="none"),
        pytest.param(("5", "5"), None, id="the same"),
        pytest.param(("5",), None, id="one container"),
    ],
)
async def test_containers_with_priorities_wait_for_barrier(client, values, expected):
    created = await client.post(PODS, pod_with_priorities(*values))
    assert created.status == 201, created.body
    barriers = [None] * len(values) if expected is None else [("web-barrier", key) for key in expected]
    assert barriers_of(created.body) == barriers


async def test_annotation_orders_containers(client):
    metadata = {"name": "web", "annotations": {"apps.kruise.io/container-launch-priority": "Ordered"}}
    created = await client.post(PODS, pod_with_priorities(None, "10", None, metadata=metadata))
    assert [key for _, key in barriers_of(created.body)] == ["p_0", "p_-1", "p_-2"]


async def test_barrier_has_generated_name_of_pod(client):
    created = await client.post(PODS, pod_with_priorities("0", "1", metadata={"generateName": "web-"}))
    name = created.body["metadata"]["name"]
    assert len(name) == len("web-") + 5
    assert barriers_of(created.body) == [(f"{name}-barrier", "p_0"), (f"{name}-barrier", "p_1")]


async def test_priority_that_is_no_number_is_denied(client):
    answer = await client.post(PODS, pod_with_priorities("high", "1"))
    assert answer.status == 500
    assert answer.body["message"] == (
        'admission webhook "mpod.kb.io" denied the request: strconv.Atoi: parsing "high": invalid syntax'
    )


async def test_pod_has_no_barrier_without_pack():
    async with apiserver.running(NO_ACCOUNTS) as client:
        created = await client.post(PODS, pod_with_priorities("0", "1"))
        assert barriers_of(created.body) == [None, None]
