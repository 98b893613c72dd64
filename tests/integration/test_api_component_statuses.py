"""ComponentStatuses over HTTP, for healthy and unhealthy components."""

import pytest

from mockube.apiserver.registry.component_statuses import ComponentHealth, ComponentStatuses
from mockube.apiserver.registry.request_context import RequestContext
from mockube.component_base.component_urls import write_component_urls
from tests.support.server import apiserver

STATUSES = "/api/v1/componentstatuses"
GOOD = ComponentHealth(is_good=True, message="ok")


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def names(answer):
    return [item["metadata"]["name"] for item in answer.body["items"]]


async def test_all_component_statuses_are_listed(client):
    answer = await client.get(STATUSES)
    assert (answer.body["kind"], answer.body["metadata"]) == ("ComponentStatusList", {})
    assert names(answer) == ["controller-manager", "scheduler", "etcd-0"]
    assert answer.headers["Warning"] == '299 - "v1 ComponentStatus is deprecated in v1.19+"'


async def test_etcd_component_is_healthy_when_store_responds(client):
    assert (await client.get(f"{STATUSES}/etcd-0")).body == {
        "kind": "ComponentStatus",
        "apiVersion": "v1",
        "metadata": {"name": "etcd-0"},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
    }


async def test_unknown_component_is_not_found(client):
    answer = await client.get(f"{STATUSES}/x")
    assert (answer.status, answer.body["message"]) == (404, 'componentstatus "x" not found')


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("fieldSelector=metadata.name=etcd-0", ["etcd-0"]),
        ("fieldSelector=metadata.name!=etcd-0", ["controller-manager", "scheduler"]),
        ("labelSelector=a", []),
    ],
)
async def test_component_statuses_support_selectors(client, selector, found):
    assert names(await client.get(f"{STATUSES}?{selector}")) == found


async def test_component_status_table_has_conditions(client):
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    answer = await client.get(f"{STATUSES}?fieldSelector=metadata.name=etcd-0", Accept=accept)
    assert [row["cells"] for row in answer.body["rows"]] == [["etcd-0", "Healthy", "ok", ""]]


@pytest.mark.parametrize(
    ("health", "condition"),
    [
        (ComponentHealth(is_good=True, message="ok"), {"status": "True", "message": "ok"}),
        (ComponentHealth(is_good=False, message="no"), {"status": "False", "message": "no"}),
        (ComponentHealth(is_good=False, error="lost"), {"status": "False", "error": "lost"}),
    ],
)
async def test_component_condition_has_probe_message(client, health, condition):
    answer, asked = await ask(client, "scheduler", health)
    assert answer.object()["conditions"] == [{"type": "Healthy"} | condition]
    assert asked == ["https://127.0.0.1:10259/healthz"]


async def ask(client, name, health=GOOD, **options):
    """Return the status of a component, and the URLs that were requested."""
    asked = []

    async def probe(url):
        asked.append(url)
        return health

    server = client.server
    context = RequestContext(
        verb="get",
        resource=server.catalog.rows["", "v1", "componentstatuses"],
        name=name,
        user=apiserver.ADMIN,
    )
    return await ComponentStatuses(probe, **options).get(server.registry, context), asked


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        ({"scheduler": "http://127.0.0.1:5/healthz"}, "http://127.0.0.1:5/healthz"),
        ({"controller-manager": "http://127.0.0.1:5/healthz"}, "https://127.0.0.1:10259/healthz"),
    ],
    ids=["manager with scheduler", "manager without scheduler"],
)
async def test_component_is_requested_where_manager_says_that_it_listens(client, tmp_path, urls, expected):
    file = tmp_path / "urls"
    write_component_urls(file, urls)
    _, asked = await ask(client, "scheduler", urls_file=file)
    assert asked == [expected]


async def test_component_of_manager_that_has_not_started_is_unhealthy(client, tmp_path):
    """Another cluster's manager may listen on the usual port."""
    answer, asked = await ask(client, "controller-manager", urls_file=tmp_path / "urls")
    message = "the controller manager has not started yet"
    assert answer.object()["conditions"] == [{"type": "Healthy", "status": "False", "message": message}]
    assert asked == []


async def test_embedded_component_is_not_requested(client):
    answer, asked = await ask(client, "scheduler", embedded_probes={"scheduler": lambda: GOOD})
    assert answer.object()["conditions"] == [{"type": "Healthy", "status": "True", "message": "ok"}]
    assert asked == []
