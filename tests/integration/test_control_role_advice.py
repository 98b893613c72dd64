"""RoleAdvice: the smallest roles for what a user did, and what its roles allow that it never did."""

import pytest

from mockube.apiserver.control import unused_rights
from tests.support.server.apiserver import Client, running, running_with_roles
from tests.support.server.control import PATH, causes, control_object

ADVICES = f"{PATH}/roleadvices"
CORE = "/api/v1"
NS = f"{CORE}/namespaces/default"
CONFIG_MAPS = f"{NS}/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNT = "system:serviceaccount:default:operator"


@pytest.fixture
async def client():
    async with running() as client:
        client.alice = Client(client.session, client.url, authorization="Bearer alice")
        yield client


async def advise(client, user="alice", **spec):
    answer = await client.post(ADVICES, control_object("RoleAdvice", spec={"user": user, **spec}))
    assert answer.status == 201, answer.body
    return answer.body["status"]


def roles(advice):
    """The rules of the roles, by namespace; each rule as its verbs, resources or paths, group and names."""
    return {
        tree["metadata"].get("namespace", ""): [flat(rule) for rule in tree["rules"]]
        for tree in advice.get("objects", ())
        if "rules" in tree
    }


def flat(rule):
    if "nonResourceURLs" in rule:
        return ",".join(rule["verbs"]), ",".join(rule["nonResourceURLs"])
    resources = ",".join(f"{name}.{rule['apiGroups'][0]}".rstrip(".") for name in rule["resources"])
    return ",".join(rule["verbs"]), resources, *rule.get("resourceNames", ())


async def test_roles_and_bindings_can_be_applied(client):
    await client.alice.get(f"{CONFIG_MAPS}/a")
    advice = await advise(client)
    role, binding = advice["objects"]
    assert (role["kind"], role["metadata"]) == ("Role", {"name": "alice", "namespace": "default"})
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get"]}
    ]
    assert (binding["kind"], binding["roleRef"]["name"]) == ("RoleBinding", "alice")
    assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    assert (advice["requests"], advice["isComplete"]) == (1, True)
    for tree in advice["objects"]:
        created = await client.post(f"{RBAC}/namespaces/default/{tree['kind'].lower()}s", tree)
        assert created.status == 201, created.body


async def test_verbs_subresources_and_names_are_those_of_the_requests(client):
    alice = client.alice
    await alice.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    await alice.get(CONFIG_MAPS)
    await alice.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Da")
    await alice.get(f"{CONFIG_MAPS}/a")
    await alice.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "1"}})
    await alice.delete(f"{CONFIG_MAPS}/b")
    await alice.delete(f"{CONFIG_MAPS}/c")
    await alice.get(f"{NS}/pods/p/log")
    await alice.get("/apis/apps/v1/namespaces/default/deployments/d/scale")
    rules = roles(await advise(client))["default"]
    assert sorted(rules) == [
        ("get", "deployments/scale.apps", "d"),
        ("get", "pods/log", "p"),
        ("get,patch", "configmaps", "a"),
        ("list,create,delete", "configmaps"),
    ]
    named = roles(await advise(client, maxNames=2))["default"]
    assert ("delete", "configmaps", "b", "c") in named
    unnamed = roles(await advise(client, maxNames=0))["default"]
    assert ("get,list,create,patch,delete", "configmaps") in unnamed


async def test_requests_over_all_namespaces_need_a_cluster_role_that_replaces_roles(client):
    alice = client.alice
    await alice.get(f"{CORE}/pods")
    await alice.get(f"{CORE}/pods?watch=1&timeoutSeconds=1")
    await alice.get(f"{NS}/pods")
    await alice.get(f"{NS}/pods/p")
    await alice.get(f"{CORE}/nodes/n")
    await alice.get(NS)
    found = roles(await advise(client))
    assert sorted(found[""]) == [
        ("get", "namespaces", "default"),
        ("get", "nodes", "n"),
        ("list,watch", "pods"),
    ]
    assert found["default"] == [("get", "pods", "p")]


async def test_update_that_creates_needs_create(client):
    body = {"metadata": {"name": "a"}, "apiVersion": "v1", "kind": "ConfigMap"}
    path = f"{CONFIG_MAPS}/a?fieldManager=t"
    assert (await client.alice.patch(path, body, kind="apply-patch+yaml")).status == 201
    assert roles(await advise(client))["default"] == [("create,patch", "configmaps", "a")]


async def test_paths_are_rules_unless_every_user_may_read_them():
    async with running_with_roles() as client:
        alice = Client(client.session, client.url, authorization="Bearer alice")
        for path in ("/version", "/metrics", "/logs/x"):
            await alice.get(path)
        advice = await advise(client, includeRefused=True)
        assert roles(advice) == {"": [("get", "/logs/x,/metrics")]}
        assert [flat(rule) for rule in advice["refused"]] == [("get", "/logs/x,/metrics")]
        assert "objects" not in await advise(client)


async def test_rights_of_impersonation_are_those_of_the_user_that_sent_it(client):
    headers = {"Impersonate-User": ACCOUNT, "Impersonate-Group": "devs"}
    await client.alice.send(
        "GET", f"{CONFIG_MAPS}/a", **{key.replace("-", "_"): headers[key] for key in headers}
    )
    found = roles(await advise(client))
    mode = "impersonate"
    assert found == {
        "": [(mode, "groups", "devs")],
        "default": [(mode, "serviceaccounts", "operator")],
    }
    target = await advise(client, user=ACCOUNT)
    assert roles(target) == {"default": [("get", "configmaps", "a")]}
    assert target["objects"][0]["metadata"]["name"] == "operator"
    assert target["objects"][1]["subjects"] == [
        {"kind": "ServiceAccount", "name": "operator", "namespace": "default"}
    ]
    assert target["groups"] == ["devs", "system:authenticated"]


async def test_constrained_impersonation_needs_its_two_verbs(client):
    await client.alice.get(f"{CONFIG_MAPS}/a", Impersonate_User="bob")
    found = roles(await advise(client))
    assert found[""] == [("impersonate:user-info", "users.authentication.k8s.io", "bob")]
    assert found["default"] == [("impersonate-on:user-info:get", "configmaps", "a")]


async def test_requests_are_those_since_a_mark(client):
    await client.alice.get(f"{CONFIG_MAPS}/a")
    await client.post(f"{PATH}/marks", control_object("Mark", "begin"))
    await client.alice.get(f"{CONFIG_MAPS}/b")
    advice = await advise(client, since="begin")
    assert (advice["requests"], roles(advice)) == (1, {"default": [("get", "configmaps", "b")]})
    assert roles(await advise(client, since="-5m")) == {"default": [("get", "configmaps")]}
    assert (await advise(client, since="now"))["requests"] == 0


async def test_dropped_requests_make_an_advice_incomplete():
    async with running("--control-requests=2") as client:
        alice = Client(client.session, client.url, authorization="Bearer alice")
        for name in "abc":
            await alice.get(f"{CONFIG_MAPS}/{name}")
        assert not (await advise(client))["isComplete"]
        assert (await advise(client, since="now"))["isComplete"]


def role(name, *rules):
    return {"metadata": {"name": name}, "rules": rules}


def binding(kind, name, subject):
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}


ALICE = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
DEVS = {"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}


async def create_roles(client, *pairs):
    for path, tree in pairs:
        answer = await client.post(f"{RBAC}/{path}", tree)
        assert answer.status == 201, answer.body
    await client.server.registry.watch_cache.fresh()


async def test_unused_rights_and_wildcards_of_roles_are_found():
    everything = {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"]}
    some = {"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["configmaps", "secrets"]}
    named = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a", "b"]}
    paths = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]}
    async with running_with_roles() as client:
        await create_roles(
            client,
            ("clusterroles", role("wide", everything, paths)),
            ("clusterrolebindings", binding("ClusterRole", "wide", ALICE)),
            ("namespaces/default/roles", role("narrow", some, named)),
            ("namespaces/default/rolebindings", binding("Role", "narrow", DEVS)),
        )
        alice = Client(client.session, client.url, authorization="Bearer alice")
        await alice.get("/apis/apps/v1/deployments")
        await alice.get("/metrics")
        await alice.get(f"{CONFIG_MAPS}/a", Impersonate_User="x")
        await client.get(f"{CONFIG_MAPS}/a", Impersonate_User="alice", Impersonate_Group="devs")
        await client.get(f"{NS}/pods/a", Impersonate_User="alice", Impersonate_Group="devs")
        wide, narrow = (await advise(client))["unused"]
    assert (wide["binding"], wide["role"]) == ('ClusterRoleBinding "wide"', 'ClusterRole "wide"')
    assert [flat(rule) for rule in wide["rules"]] == [("get", "/logs/*")]
    ((rule, used),) = [(flat(each["rule"]), each["used"]) for each in wide["wildcards"]]
    assert (rule, [flat(each) for each in used]) == (("*", "*.apps"), [("list", "deployments.apps")])
    assert narrow["binding"] == 'RoleBinding "default/narrow"'
    assert sorted(flat(rule) for rule in narrow["rules"]) == [
        ("delete", "configmaps"),
        ("get", "pods", "b"),
        ("get,delete", "secrets"),
    ]


async def test_invalid_advices_are_refused(client):
    answer = await client.post(ADVICES, control_object("RoleAdvice", spec={"user": "", "maxNames": -1}))
    assert (answer.status, [field for field, _ in causes(answer)]) == (422, ["spec.maxNames", "spec.user"])
    answer = await client.post(ADVICES, control_object("RoleAdvice", spec={"user": "a", "since": "nothing"}))
    assert (answer.status, "nothing is no moment" in answer.body["message"]) == (404, True)
    advice = await advise(client, user="nobody")
    assert (advice["requests"], "objects" in advice) == (0, False)


async def test_advice_needs_its_own_right():
    async with running_with_roles() as client:
        posted = control_object("RoleAdvice", spec={"user": "alice"})
        assert (await client.post(ADVICES, posted, Authorization="Bearer alice")).status == 403


CONTROL = {"apiGroups": ["control.mockube.dev"], "resources": ["roleadvices"], "verbs": ["create"]}
REQUESTS = {"apiGroups": ["control.mockube.dev"], "resources": ["requests"], "verbs": ["get"]}
ROLES = ["roles", "rolebindings"]


async def test_advice_needs_the_right_to_get_requests():
    async with running_with_roles() as client:
        await bind_alice(client, CONTROL)
        posted = control_object("RoleAdvice", spec={"user": "admin"})
        alice = Client(client.session, client.url, authorization="Bearer alice")
        refused = await alice.post(ADVICES, posted)
        assert (refused.status, "verb get for requests" in refused.body["message"]) == (403, True)
        await client.patch(f"{RBAC}/clusterroles/alice", {"rules": [CONTROL, REQUESTS]})
        await client.server.registry.watch_cache.fresh()
        assert (await alice.post(ADVICES, posted)).status == 201


async def bind_alice(client, *rules):
    await create_roles(
        client,
        ("clusterroles", role("alice", *rules)),
        ("clusterrolebindings", binding("ClusterRole", "alice", ALICE)),
    )


async def test_advice_shows_roles_that_its_user_may_list():
    lists = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ROLES, "verbs": ["list"]}
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    bob = {**ALICE, "name": "bob"}
    async with running_with_roles() as client:
        await bind_alice(client, CONTROL, REQUESTS)
        await create_roles(
            client,
            ("clusterroles", role("bob", pods)),
            ("clusterrolebindings", binding("ClusterRole", "bob", bob)),
            ("namespaces/default/roles", role("bob", pods)),
            ("namespaces/default/rolebindings", binding("Role", "bob", bob)),
            ("namespaces/default/roles", role("lists", lists)),
        )
        alice = Client(client.session, client.url, authorization="Bearer alice")
        hidden = await advise(alice, user="bob")
        assert ("unused" in hidden, hidden["unusedOmitted"]) == (
            False,
            ["Roles and bindings that you may not list"],
        )
        await create_roles(client, ("namespaces/default/rolebindings", binding("Role", "lists", ALICE)))
        some = await advise(alice, user="bob")
        assert [each["binding"] for each in some["unused"]] == ['RoleBinding "default/bob"']
        everything = await advise(client, user="bob")
    assert (len(everything["unused"]), "unusedOmitted" in everything) == (2, False)


async def test_roles_with_very_many_rights_are_compared_in_part(monkeypatch):
    monkeypatch.setattr(unused_rights, "MAX_COMPARISONS", 3)
    async with running_with_roles() as client:
        some = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["a", "b", "c"]}
        await bind_alice(client, some)
        advice = await advise(client)
    (unused,) = advice["unused"]
    assert [flat(rule) for rule in unused["rules"]] == [("get", "a,b,c")]
    assert "comparisons" in advice["unusedOmitted"][0]
