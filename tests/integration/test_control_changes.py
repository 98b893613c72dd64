"""Changes: who wrote what, read from the history of the store."""

import asyncio
from contextlib import suppress

import orjson
import pytest
from msgspec.structs import replace

from mockube.apiserver.storage import continue_token
from mockube.apiserver.storage.continue_token import ContinueToken
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.mvcc import Mvcc
from mockube.etcd.embedded.store import BURST, MemoryStore
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import Delete, Txn
from tests.support.server.apiserver import Client, running, running_with_roles
from tests.support.server.control import PATH, causes, control_object

CHANGES = f"{PATH}/changes"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def changes(client, selector=""):
    answer = await client.get(f"{CHANGES}?fieldSelector={selector}")
    assert answer.status == 200, answer.body
    return [item["spec"] for item in answer.body["items"]]


async def test_kind_resource_and_type_that_do_not_exist_are_refused(client):
    for selector, problem in (
        ("kind=Podd", 'no kind "Podd" is served: did you mean "Pod"?'),
        ("resource=po", 'no resource "po" is served: did you mean resource=pods?'),
    ):
        for watch in ("", "&watch=1"):
            refused = await client.get(f"{CHANGES}?fieldSelector={selector}{watch}")
            assert (refused.status, refused.body["message"]) == (400, f"field selector {selector}: {problem}")
    for served in ("kind=Pod", "resource=deployments.apps", "kind=CustomResourceDefinition"):
        assert (await client.get(f"{CHANGES}?fieldSelector={served}")).status == 200
    refused = await client.get(f"{CHANGES}?fieldSelector=type=added")
    assert refused.body["message"] == (
        'field selector type=added: "added" is not a type, must be one of ADDED, MODIFIED, DELETED'
    )


async def write_config_map(client, name="a"):
    """Create, change and delete a ConfigMap."""
    created = await client.post(CONFIG_MAPS, {"metadata": {"name": name}, "data": {"x": "y"}})
    await client.patch(f"{CONFIG_MAPS}/{name}", {"data": {"x": "z", "q": "1"}})
    await client.delete(f"{CONFIG_MAPS}/{name}")
    return created


async def test_change_shows_object_author_and_patch(client):
    created = await write_config_map(client)
    added, modified, deleted = await changes(client, "kind=ConfigMap")
    assert [spec["type"] for spec in (added, modified, deleted)] == ["ADDED", "MODIFIED", "DELETED"]
    assert added["revision"] == int(created.body["metadata"]["resourceVersion"])
    assert added["object"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "resource": "configmaps",
        "namespace": "default",
        "name": "a",
        "uid": created.body["metadata"]["uid"],
    }
    author = added["author"]
    assert (author["user"], author["verb"], author["auditID"]) == (
        "admin",
        "create",
        created.headers["Audit-Id"],
    )
    assert added["patch"][0]["value"]["data"] == {"x": "y"}
    assert "managedFields" not in added["patch"][0]["value"]["metadata"]
    assert modified["patch"] == [
        {"op": "add", "path": "/data/q", "value": "1"},
        {"op": "replace", "path": "/data/x", "value": "z"},
    ]
    assert deleted["patch"] == [{"op": "remove", "path": ""}]


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ("kind=ConfigMap,namespace=default,name=a", 3),
        ("resource=configmaps,name=b", 1),
        ("kind=ConfigMap,namespace=other", 0),
        ("user=admin,type=DELETED", 1),
        ("user=nobody", 0),
        ("kind=ConfigMap,type!=ADDED", 2),
        ("kind=ConfigMap,namespace=..", 0),
    ],
)
async def test_changes_are_selected_by_fields(client, selector, count):
    await write_config_map(client)
    await client.post(CONFIG_MAPS, {"metadata": {"name": "b"}})
    if selector.endswith(".."):
        assert (await client.get(f"{CHANGES}?fieldSelector={selector}")).status >= 400
    else:
        assert len(await changes(client, selector)) == count


async def test_values_of_secrets_are_masked(client):
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "hidden-1"}
    secret = {"metadata": {"name": "s", "annotations": applied}, "stringData": {"x": "hidden-2"}}
    assert (await client.post(SECRETS, secret)).status == 201
    await client.patch(f"{SECRETS}/s", {"stringData": {"x": "hidden-3", "y": "hidden-4"}})
    text = (await client.get(f"{CHANGES}?fieldSelector=kind=Secret")).data
    added, modified = [item["spec"] for item in orjson.loads(text)["items"]]
    assert b"hidden" not in text
    assert b"aGlkZGVu" not in text
    assert added["patch"][0]["value"]["data"] == {"x": "**********"}
    assert [operation["path"] for operation in modified["patch"]] == ["/data/x", "/data/y"]


def rules_to_list(*resources):
    return [
        {"apiGroups": ["control.mockube.dev"], "resources": ["changes"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": [*resources], "verbs": ["list"]},
    ]


async def let_alice_list(client, *resources):
    """Bind alice to a ClusterRole "r", and return her client."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    rules = rules_to_list(*resources)
    await client.post(f"{RBAC}/clusterroles", {"metadata": {"name": "r"}, "rules": rules})
    await client.post(
        f"{RBAC}/clusterrolebindings", {"metadata": {"name": "r"}, "roleRef": role, "subjects": [subject]}
    )
    await client.server.registry.watch_cache.fresh()
    return Client(client.session, client.url, authorization="Bearer alice")


async def test_user_sees_only_what_they_may_list():
    async with running_with_roles() as client:
        alice = await let_alice_list(client, "configmaps")
        await write_config_map(client)
        created = await client.post(SECRETS, {"metadata": {"name": "s"}})
        (secret,) = (await client.get(f"{CHANGES}?fieldSelector=kind=Secret")).body["items"]
        name = secret["metadata"]["name"]
        assert name.startswith(f"{created.body['metadata']['resourceVersion']}-")
        assert {spec["object"]["kind"] for spec in await changes(alice)} == {"ConfigMap"}
        assert (await alice.get(f"{CHANGES}/{name}")).status == 404
        assert (await client.get(f"{CHANGES}/{name}")).status == 200
        lines = (await alice.get(f"{CHANGES}?watch=1&resourceVersion=2&timeoutSeconds=1")).data.splitlines()
        kinds = {orjson.loads(line)["object"]["spec"]["object"]["kind"] for line in lines}
        assert kinds == {"ConfigMap"}


async def test_watch_does_not_send_what_its_user_may_not_list_any_more():
    async with running_with_roles() as client:
        alice = await let_alice_list(client, "configmaps")
        start = (await client.get(CHANGES)).body["metadata"]["resourceVersion"]
        async with alice.watch(f"{CHANGES}?watch=1&resourceVersion={start}") as events:
            await client.post(CONFIG_MAPS, {"metadata": {"name": "before"}})
            assert (await anext(events))["object"]["spec"]["object"]["name"] == "before"
            await client.patch(f"{RBAC}/clusterroles/r", {"rules": rules_to_list("secrets")})
            await client.server.registry.watch_cache.fresh()
            await client.post(CONFIG_MAPS, {"metadata": {"name": "hidden"}})
            await client.post(SECRETS, {"metadata": {"name": "after"}})
            assert (await anext(events))["object"]["spec"]["object"]["name"] == "after"


async def test_watch_sends_following_changes_and_resumes(client):
    await write_config_map(client, "old")
    start = (await client.get(CHANGES)).body["metadata"]["resourceVersion"]
    selector = "fieldSelector=kind=ConfigMap"
    async with client.watch(f"{CHANGES}?watch=1&{selector}&resourceVersion={start}") as events:
        await client.post(CONFIG_MAPS, {"metadata": {"name": "new"}})
        event = await anext(events)
        assert (event["type"], event["object"]["spec"]["object"]["name"]) == ("ADDED", "new")
        assert event["object"]["spec"]["author"]["user"] == "admin"


async def test_watch_has_the_author_of_each_write_of_a_burst(client):
    start = (await client.get(CHANGES)).body["metadata"]["resourceVersion"]
    names = [f"burst-{number}" for number in range(2 * BURST)]
    selector = "fieldSelector=kind=ConfigMap"
    async with client.watch(f"{CHANGES}?watch=1&{selector}&resourceVersion={start}") as events:
        writes = [client.post(CONFIG_MAPS, {"metadata": {"name": name}}) for name in names]
        await asyncio.gather(*writes)
        found = [(await anext(events))["object"]["spec"] for _ in names]
    assert {(spec.get("author") or {}).get("user") for spec in found} == {"admin"}


async def test_list_that_lacks_compacted_changes_has_a_warning(client):
    await write_config_map(client, "old")
    kv = client.server.registry.kv
    await kv.compact((await kv.status()).revision)
    await client.post(CONFIG_MAPS, {"metadata": {"name": "new"}})
    path = f"{CHANGES}?fieldSelector=kind=ConfigMap,namespace=default"
    for selector in ("", ",name=old"):
        assert (
            " are gone: --history sets how much is kept"
            in (await client.get(path + selector)).headers["Warning"]
        )
    assert "Warning" not in (await client.get(f"{path},name=new")).headers


async def test_list_of_store_that_begins_at_a_later_revision_has_no_warning():
    core = Mvcc()
    core.load(1_000_000, (), ())
    async with running(kv=MemoryStore(clock=RealClock(), core=core)) as client:
        await write_config_map(client, "new")
        answer = await client.get(f"{CHANGES}?fieldSelector=kind=ConfigMap,name=new")
        assert (len(answer.body["items"]), "Warning" in answer.headers) == (3, False)


async def test_watch_from_compacted_revision_gets_410(client):
    await write_config_map(client)
    await client.server.registry.kv.compact((await client.server.registry.kv.status()).revision)
    old = await client.get(f"{CHANGES}?watch=1&resourceVersion=2&timeoutSeconds=1")
    assert orjson.loads(old.data)["object"]["code"] == 410
    assert await changes(client) == []


async def test_pages_have_the_changes_of_the_first_page(client):
    for name in "abcde":
        await client.post(CONFIG_MAPS, {"metadata": {"name": name}})
    path = f"{CHANGES}?fieldSelector=kind=ConfigMap"
    everything = (await client.get(path)).body
    first = (await client.get(f"{path}&limit=2")).body
    await client.post(CONFIG_MAPS, {"metadata": {"name": "later"}})
    second = (await client.get(f"{path}&limit=2&continue={first['metadata']['continue']}")).body
    third = (await client.get(f"{path}&continue={second['metadata']['continue']}")).body
    assert first["items"] + second["items"] + third["items"] == everything["items"]
    assert [len(page["items"]) for page in (first, second, third)] == [2, 2, 1]
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {
        everything["metadata"]["resourceVersion"]
    }
    assert "continue" not in third["metadata"]


async def test_page_of_all_changes_says_how_many_remain(client):
    await write_config_map(client)
    count = len((await client.get(CHANGES)).body["items"])
    metadata = (await client.get(f"{CHANGES}?limit=1")).body["metadata"]
    assert metadata["remainingItemCount"] == count - 1


async def test_pages_are_of_the_newest_changes_although_others_follow():
    async with running("--control-changes=4") as client:
        for name in "abcdef":
            await client.post(CONFIG_MAPS, {"metadata": {"name": name}})
        names, token = [], ""
        while token or not names:
            page = (await client.get(f"{CHANGES}?limit=1&continue={token}")).body
            names += [item["spec"]["object"]["name"] for item in page["items"]]
            token = page["metadata"].get("continue", "")
            await client.post(CONFIG_MAPS, {"metadata": {"name": f"later-{len(names)}"}})
    assert names == ["c", "d", "e", "f"]


@pytest.mark.parametrize("start", ["x", "../1-0", "", "99999999999999999999999-a"])
async def test_forged_token_is_refused_or_continues(client, start):
    token = continue_token.encode(ContinueToken(2**62, start))
    assert (await client.get(f"{CHANGES}?continue={token}")).status in (200, 400)
    assert (await client.get(f"{PATH}/requests?continue={token}")).status in (200, 400)


async def test_list_is_limited():
    async with running("--control-changes=2") as client:
        await write_config_map(client)
        assert [spec["type"] for spec in await changes(client, "kind=ConfigMap")] == ["MODIFIED", "DELETED"]
        assert len(await changes(client)) == 2
        answer = await client.get(CHANGES)
        assert answer.headers["Warning"].startswith(
            '299 - "older changes are left out: a list has the newest 2 '
        )


async def test_large_patch_is_omitted(client):
    await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": "y" * 40_000}})
    (spec,) = await changes(client, "kind=ConfigMap")
    assert "patch" not in spec
    assert spec["patchOmitted"] == "it is larger than 32768 bytes"


async def test_change_of_custom_object_has_its_kind(client):
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await client.post(path, {"metadata": {"name": "things.example.com"}, "spec": spec})
    await client.server.wait_definitions_served()
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    assert (await client.post("/apis/example.com/v1/namespaces/default/things", thing)).status == 201
    (change,) = await changes(client, "kind=Thing")
    assert change["object"]["resource"] == "things.example.com"
    assert change["object"]["namespace"] == "default"


async def test_name_of_a_change_finds_it_whatever_the_selector_was(client):
    kv, root = client.server.registry.kv, client.server.registry.layout.root
    for path in (CONFIG_MAPS, SECRETS):
        for name in "ab":
            assert (await client.post(path, {"metadata": {"name": name}})).status == 201
    deletions = [
        Delete(key=root + f"{resource}/default/{name}".encode())
        for resource in ("configmaps", "secrets")
        for name in "ab"
    ]
    revision = (await kv.txn(Txn(then=tuple(deletions)))).revision
    listed = {}
    for selector in (
        "type=DELETED",
        "kind=ConfigMap,type=DELETED",
        "kind=Secret,type=DELETED,namespace=default",
    ):
        for item in (await client.get(f"{CHANGES}?fieldSelector={selector}")).body["items"]:
            assert item["spec"]["revision"] == revision
            assert listed.setdefault(item["metadata"]["name"], item) == item
    assert len(listed) == 4
    for name, item in listed.items():
        assert (await client.get(f"{CHANGES}/{name}")).body["spec"] == item["spec"]


async def test_changes_are_read_only(client):
    assert (await client.post(CHANGES, control_object("Change", "a"))).status == 405
    for name in ("x", "1" * 5000, f"{'1' * 5000}-{'0' * 12}", "1-" + "1" * 5000, "-1", "1-"):
        assert (await client.get(f"{CHANGES}/{name}")).status == 404
    assert (await client.get(f"{CHANGES}/99999-000000000000")).status == 404
    await write_config_map(client)
    table = (await client.get(f"{CHANGES}?fieldSelector=type=DELETED", Accept=TABLE)).body
    assert table["rows"][0]["cells"][1:6] == ["DELETED", "ConfigMap", "default", "a", "admin"]


class ReticentStore(MemoryStore):
    """A store that reports as etcd does: not which revision is the oldest one."""

    async def status(self):
        return replace(await super().status(), compact_revision=0)


async def test_changes_begin_at_oldest_revision_of_store_that_does_not_report_it():
    store = ReticentStore(clock=RealClock())
    async with running(kv=store) as client:
        await write_config_map(client, "old")
        oldest = (await store.status()).revision
        await store.compact(oldest)
        await client.post(CONFIG_MAPS, {"metadata": {"name": "new"}})
        assert [spec["object"]["name"] for spec in await changes(client, "kind=ConfigMap")] == ["new"]
        assert (await client.get(f"{CHANGES}/{oldest - 1}-000000000000")).status == 404
        mark = control_object("Mark", "m", spec={"revision": oldest - 1})
        refused = await client.post(f"{PATH}/marks", mark)
        assert "begins at" in causes(refused)[0][1]


class ForgetfulStore(MemoryStore):
    """A store whose history is compacted whenever it is read."""

    async def watch(self, request):
        if request.previous:
            with suppress(Compacted):
                await self.compact((await self.status()).revision)
        return await super().watch(request)


async def test_list_whose_history_is_compacted_meanwhile_gets_410():
    async with running(kv=ForgetfulStore(clock=RealClock())) as client:
        await write_config_map(client)
        answer = await client.get(CHANGES)
        assert (answer.status, answer.body["reason"]) == (410, "Expired")


async def test_change_of_a_future_revision_does_not_exist(client):
    assert (await client.get(f"{CHANGES}/{10**18}-000000000000")).status == 404


async def test_list_has_no_change_after_its_version(client):
    await write_config_map(client)
    body = (await client.get(CHANGES)).body
    versions = [int(item["metadata"]["resourceVersion"]) for item in body["items"]]
    assert versions[-1] <= int(body["metadata"]["resourceVersion"])
