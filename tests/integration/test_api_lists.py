"""Lists: pages, selectors, and the allowed age of the returned data."""

import asyncio

import pytest

from tests.support.server import apiserver

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        for number in range(10):
            labels = {"n": str(number), "odd": str(number % 2)}
            await client.post(MAPS, {"metadata": {"name": f"c{number}", "labels": labels}})
        yield client


def names(answer):
    return [item["metadata"]["name"] for item in answer.body["items"]]


async def pages(client, query):
    found, token = [], ""
    while True:
        answer = await client.get(f"{MAPS}?limit=3&{query}&continue={token}")
        assert answer.status == 200, answer.body
        found.append(answer)
        token = answer.body["metadata"].get("continue")
        if not token:
            return found


async def test_pages_together_are_the_whole_list(client):
    answers = await pages(client, "")
    assert [len(names(answer)) for answer in answers] == [3, 3, 3, 1]
    assert [name for answer in answers for name in names(answer)] == [f"c{number}" for number in range(10)]
    left = [answer.body["metadata"].get("remainingItemCount") for answer in answers]
    assert left == [7, 4, 1, None]


async def test_pages_show_one_revision_despite_writes(client):
    first = await client.get(f"{MAPS}?limit=3")
    await client.delete(f"{MAPS}/c5")
    await client.post(MAPS, {"metadata": {"name": "c55"}})
    token = first.body["metadata"]["continue"]
    rest = await client.get(f"{MAPS}?limit=100&continue={token}")
    assert names(rest) == [f"c{number}" for number in range(3, 10)]
    assert rest.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]


async def test_list_by_label_contains_no_write_after_its_revision(client):
    """The first list by a label indexes it in steps, and writes happen between two steps."""

    async def create(number):
        labels = {"first": "a", "second": "b"}
        await client.post(MAPS, {"metadata": {"name": f"d{number}", "labels": labels}})

    await asyncio.gather(*map(create, range(1500)))
    for label in ("first%3Da", "second%3Db"):
        answer, *_ = await asyncio.gather(
            client.get(f"{MAPS}?labelSelector={label}"), *map(create, range(2000, 2020))
        )
        revision = int(answer.body["metadata"]["resourceVersion"])
        assert len(answer.body["items"]) >= 1500
        assert all(int(item["metadata"]["resourceVersion"]) <= revision for item in answer.body["items"])
        await asyncio.gather(*(client.delete(f"{MAPS}/d{number}") for number in range(2000, 2020)))


async def test_pages_with_selector_are_full(client):
    answers = await pages(client, "labelSelector=odd%3D1")
    assert [len(names(answer)) for answer in answers] == [3, 2]
    assert all("remainingItemCount" not in answer.body["metadata"] for answer in answers)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("labelSelector=n+in+(1,2)", ["c1", "c2"], id="a set of values"),
        pytest.param("labelSelector=n%3D3,odd%3D1", ["c3"], id="two labels"),
        pytest.param("labelSelector=n%3D3,odd%3D0", [], id="two without matches"),
        pytest.param("labelSelector=none", [], id="a label without matches"),
        pytest.param("fieldSelector=metadata.name%3Dc4", ["c4"], id="a name"),
        pytest.param("fieldSelector=metadata.name%3Dc", [], id="the beginning of names"),
        pytest.param("fieldSelector=metadata.namespace%3Dother", [], id="another namespace"),
    ],
)
async def test_selectors_select_objects(client, query, expected):
    assert names(await client.get(f"{MAPS}?{query}")) == expected


async def test_exact_resource_version_lists_past_state(client):
    then = (await client.get(MAPS)).body["metadata"]["resourceVersion"]
    await client.delete(f"{MAPS}/c0")
    exact = await client.get(f"{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert len(names(exact)) == 10
    assert len(names(await client.get(MAPS))) == 9


async def test_changed_label_is_selected_by_new_value_only(client):
    query = f"{MAPS}?labelSelector=n%3D"
    assert names(await client.get(f"{query}7")) == ["c7"]
    for number in range(100, 140):  # enough objects that the label index is used instead of a scan
        await client.post(MAPS, {"metadata": {"name": f"c{number}", "labels": {"n": "many"}}})
    assert len(names(await client.get(f"{query}many"))) == 40
    await client.patch(f"{MAPS}/c7", {"metadata": {"labels": {"n": "many"}}})
    await client.delete(f"{MAPS}/c100")
    assert len(names(await client.get(f"{query}many"))) == 40
    assert names(await client.get(f"{query}7")) == []


async def test_invalid_continue_token_is_reported_before_resource_version(client):
    answer = await client.get(f"{MAPS}?limit=3&continue=x&resourceVersion=y")
    assert (answer.status, answer.body["message"].split(":")[0]) == (400, "invalid continue token")
    token = (await pages(client, ""))[0].body["metadata"]["continue"]
    answer = await client.get(f"{MAPS}?continue={token}&resourceVersion=y")
    problem = "specifying resource version is not allowed when using continue"
    assert (answer.status, answer.body["message"]) == (400, problem)


async def test_deletecollection_includes_system_priority_classes(client):
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    answer = await client.delete(f"{path}/system-node-critical")
    assert (answer.status, "cannot be deleted" in answer.body["message"]) == (403, True)
    answer = await client.delete(f"{path}?dryRun=All")
    assert answer.status == 200, answer.body
