"""A server that has the objects of one situation at a time."""

from contextlib import asynccontextmanager

import orjson

from mockube.apimachinery.groups import GroupKind
from tests.support.situations import CLUSTER_SCOPED, NAMESPACE

from .control import PATH, control_object

ADA = {"Impersonate-User": "ada", "User-Agent": "kubectl/v1.37.2 (linux)"}


class SituationCluster:
    def __init__(self, client):
        self._client, self._uids, self._paths = client, {}, []
        self._rows = {GroupKind(row.group, row.kind): row for row in client.server.registry.rows.values()}

    async def begin(self):
        await self._client.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        await self._client.post(accounts, {"metadata": {"name": "default"}})

    @asynccontextmanager
    async def explained(self, situation):
        """Make a situation, yield the status of its Explanation, and delete its objects."""
        try:
            for tree in situation.objects:
                await self._add(orjson.loads(orjson.dumps(tree)))
            for name, patch in situation.changes:
                await self._change(name, patch)
            yield await self._explain(situation.subject)
        finally:
            await self._clear()

    def _path(self, tree):
        group = tree["apiVersion"].rpartition("/")[0]
        row = self._rows[GroupKind(group, tree["kind"])]
        root = f"/apis/{tree['apiVersion']}" if group else f"/api/{tree['apiVersion']}"
        namespace = "" if tree["kind"] in CLUSTER_SCOPED else f"/namespaces/{NAMESPACE}"
        return f"{root}{namespace}/{row.name}"

    async def _add(self, tree):
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

    async def _change(self, name, patch):
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

    async def _explain(self, subject):
        kind, _, name = subject.partition("/")
        spec = {"request": {}} if kind == "Request" else {"object": {"kind": kind, "name": name}}
        if kind not in CLUSTER_SCOPED and kind != "Request":
            spec["object"]["namespace"] = NAMESPACE
        answer = await self._client.post(f"{PATH}/explanations", control_object("Explanation", spec=spec))
        assert answer.status == 201, answer.body
        return answer.body["status"]

    async def _clear(self):
        for _, path in reversed(self._paths):
            await self._client.delete(path, {"gracePeriodSeconds": 0})
            await self._client.patch(path, {"metadata": {"finalizers": None}})
        self._paths.clear()
