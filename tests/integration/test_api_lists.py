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


@pytest.mark.parametrize(
    ("query", "found", "has_more"),
    [
        ("labelSelector=odd=1&limit=4", "c1 c3 c5 c7", True),
        ("labelSelector=odd=1&limit=5", "c1 c3 c5 c7 c9", False),
        ("labelSelector=odd=0&limit=5", "c0 c2 c4 c6 c8", True),
        ("labelSelector=odd=0&limit=6", "c0 c2 c4 c6 c8", False),
        ("labelSelector=n=3&limit=1", "c3", True),
        ("labelSelector=n=3&limit=1&resourceVersion=0", "c3", False),
        ("labelSelector=n=3&limit=1&resourceVersion=1&resourceVersionMatch=NotOlderThan", "c3", True),
        ("fieldSelector=metadata.name=c3&limit=1", "c3", False),
        ("fieldSelector=metadata.name!=c0&limit=8", "c1 c2 c3 c4 c5 c6 c7 c8", True),
        ("fieldSelector=metadata.namespace=default&limit=10", "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9", False),
    ],
)
async def test_page_of_selector_has_more_if_objects_follow_whether_they_match_or_not(
    client, query, found, has_more
):
    answer = await client.get(f"{MAPS}?{query}")
    assert " ".join(names(answer)) == found
    assert bool(answer.body["metadata"].get("continue")) is has_more
    assert "remainingItemCount" not in answer.body["metadata"]


async def test_page_of_name_at_revision_has_no_more(client):
    version = (await client.get(MAPS)).body["metadata"]["resourceVersion"]
    answer = await client.get(f"{MAPS}?fieldSelector=metadata.name=c3&limit=1&resourceVersion={version}")
    assert names(answer) == ["c3"]
    assert "continue" not in answer.body["metadata"]


async def test_namespace_selector_of_all_namespaces_limits_what_follows(client):
    await client.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    await client.post("/api/v1/namespaces/other/configmaps", {"metadata": {"name": "c"}})
    whole = "/api/v1/configmaps?labelSelector=n=9&limit=1"
    answer = await client.get(whole)
    assert answer.body["metadata"]["continue"]
    answer = await client.get(f"{whole}&fieldSelector=metadata.namespace=default")
    assert names(answer) == ["c9"]
    assert "continue" not in answer.body["metadata"]


@pytest.mark.parametrize("label", ["spec.nodeName", "spec.host"])
async def test_page_of_node_has_no_more_if_only_pods_of_other_nodes_follow(client, label):
    pods = "/api/v1/namespaces/default/pods"
    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    for name, node in (("a", "n1"), ("b", "n1"), ("c", "n2")):
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        assert (await client.post(pods, {"metadata": {"name": name}, "spec": spec})).status == 201
    for limit, has_more in ((1, True), (2, False)):
        answer = await client.get(f"{pods}?fieldSelector={label}=n1&limit={limit}")
        assert names(answer) == ["a", "b"][:limit]
        assert bool(answer.body["metadata"].get("continue")) is has_more


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("labelSelector=a+b&limit=x&timeoutSeconds=y", 400, 'strconv.ParseInt: parsing "y": invalid syntax'),
        ("labelSelector=a+b&limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("labelSelector=a+b&resourceVersionMatch=Exact", 400, "unable to parse requirement: found 'b'"),
        ("fieldSelector=a&resourceVersionMatch=Exact", 400, "invalid selector: 'a'; can't understand 'a'"),
        ("fieldSelector=a&labelSelector=a+b", 400, "unable to parse requirement: found 'b'"),
        ("fieldSelector=a=b&resourceVersionMatch=Exact", 422, 'ListOptions.meta.k8s.io "" is invalid'),
        ("fieldSelector=a=b", 400, '"a" is not a known field selector'),
    ],
)
@pytest.mark.parametrize("verb", ["list", "watch", "deletecollection"])
async def test_first_error_of_options_is_upstreams(client, verb, query, code, message):
    if verb == "watch":
        query = f"watch=true&{query}"
    method = "DELETE" if verb == "deletecollection" else "GET"
    answer = await client.send(method, f"{MAPS}?{query}")
    assert answer.status == code
    assert answer.body["message"].startswith(message)


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
