"""What `why` says of situations: the cause, who wrote what it names, and only remedies that the server accepts."""

import asyncio

import pytest

from mockube.apimachinery.groups import GroupKind
from tests.support.server.apiserver import running
from tests.support.server.control import PATH, control_object
from tests.support.situations import CLUSTER_SCOPED, NAMESPACE, SITUATIONS

ADA = {"Impersonate-User": "ada", "User-Agent": "kubectl/v1.37.2 (linux)"}


class Cluster:
    """A server with the objects of one situation at a time."""

    def __init__(self, client):
        self._client, self._uids, self._paths = client, {}, []
        self._rows = {GroupKind(row.group, row.kind): row for row in client.server.registry.rows.values()}

    def _path(self, tree):
        group = tree["apiVersion"].rpartition("/")[0]
        row = self._rows[GroupKind(group, tree["kind"])]
        root = f"/apis/{tree['apiVersion']}" if group else f"/api/{tree['apiVersion']}"
        namespace = "" if tree["kind"] in CLUSTER_SCOPED else f"/namespaces/{NAMESPACE}"
        return f"{root}{namespace}/{row.name}"

    async def add(self, tree):
        for reference in tree["metadata"].get("ownerReferences", ()):
            reference["uid"] = self._uids.get(reference["uid"], reference["uid"])
        involved = tree.get("involvedObject")
        if involved:
            tree = {**tree, "involvedObject": {**involved, "uid": self._uids[involved["uid"]]}}
        path = self._path(tree)
        answer = await self._client.post(path, {name: tree[name] for name in tree if name != "status"})
        assert answer.status == 201, answer.body
        name = f"{tree['kind']}/{tree['metadata']['name']}"
        self._uids[f"uid of {name}"] = answer.body["metadata"]["uid"]
        self._paths.append((name, f"{path}/{tree['metadata']['name']}"))
        if tree["kind"] == "Node":  # without the taint of new nodes
            taints = {"spec": {"taints": tree["spec"]["taints"]}}
            assert (await self._client.patch(self._paths[-1][1], taints)).status == 200
        if "status" in tree:
            body = {"status": tree["status"]}
            assert (await self._client.patch(f"{self._paths[-1][1]}/status", body)).status == 200

    async def change(self, name, patch):
        kind, _, rest = name.partition("/")
        target, _, subresource = rest.partition("/")
        path = dict(self._paths)[f"{kind}/{target}"]
        if patch is None:
            assert (await self._client.delete(path, **ADA)).status == 200
        elif patch == "evict":
            await self._client.post(f"{path}/eviction", {"metadata": {"name": target}}, **ADA)
        else:
            place = f"{path}/{subresource}" if subresource else path
            kind = "merge-patch+json" if "metadata" in patch or subresource else "strategic-merge-patch+json"
            answer = await self._client.patch(place, patch, kind=kind, **ADA)
            assert answer.status == 200, answer.body

    async def explain(self, subject):
        kind, _, name = subject.partition("/")
        spec = {"request": {}} if kind == "Request" else {"object": {"kind": kind, "name": name}}
        if kind not in CLUSTER_SCOPED and kind != "Request":
            spec["object"]["namespace"] = NAMESPACE
        answer = await self._client.post(f"{PATH}/explanations", control_object("Explanation", spec=spec))
        assert answer.status == 201, answer.body
        return answer.body["status"]

    async def clear(self):
        for _, path in reversed(self._paths):
            await self._client.delete(path, {"gracePeriodSeconds": 0})
            await self._client.patch(path, {"metadata": {"finalizers": None}})
        self._paths.clear()


async def _explain(situations):
    found = {}
    async with running() as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        account = {"metadata": {"name": "default"}}
        await client.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
        cluster = Cluster(client)
        for situation in situations:
            try:
                for tree in situation.objects:
                    await cluster.add(tree)
                for name, patch in situation.changes:
                    await cluster.change(name, patch)
                found[situation.name] = await cluster.explain(situation.subject)
            except AssertionError as error:
                found[situation.name] = error
            await cluster.clear()
    return found


@pytest.fixture(scope="module")
def explained(request):
    """Return what is said of each situation that is tested, of one server."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    selected = [call.params["situation"] for call in calls if call is not None and "situation" in call.params]
    return asyncio.run(_explain(selected))


EACH = 5
"""One of so many situations is tested by `make test`, all of them by `make test-all`."""


@pytest.mark.parametrize(
    "situation",
    [
        pytest.param(situation, id=situation.name, marks=[pytest.mark.release] if position % EACH else [])
        for position, situation in enumerate(SITUATIONS)
    ],
)
def test_situation_is_explained(situation, explained):
    status = explained[situation.name]
    assert not isinstance(status, AssertionError), status
    assert situation.cause in status["cause"]
    origins = status.get("origins", ())
    if situation.origin:
        assert situation.origin == _text(origins[0]), [*map(_text, origins)]
    if situation.author:
        assert origins[0]["writes"][0]["user"] == situation.author, origins[0]
    commands = [each["command"] for each in status.get("remedies", ()) if "command" in each]
    for expected in situation.commands:
        assert any(each.startswith(expected) for each in commands), (expected, commands)
    for part in situation.absent:
        assert not any(part in each for each in commands), (part, commands)


def _text(origin):
    named = origin["object"]
    return f"{named['kind'].lower()}/{named['name']} {origin.get('field', '')}".strip()
