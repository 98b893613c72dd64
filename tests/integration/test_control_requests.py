"""Requests: what was sent to the server, listed, selected and watched."""

import asyncio

import orjson
import pytest

from mockube.apiserver.storage import continue_token
from mockube.apiserver.storage.continue_token import ContinueToken
from tests.support.event_loop import until
from tests.support.server.apiserver import Client, running, running_with_roles
from tests.support.server.control import PATH, control_object

REQUESTS = f"{PATH}/requests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def requests(client, selector=""):
    return (await client.get(f"{REQUESTS}?fieldSelector={selector}")).body["items"]


async def test_request_shows_what_was_sent_and_written(client):
    created = await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}}, User_Agent="tests/1")
    (item,) = await requests(client, "resource=configmaps")
    audit_id, time = created.headers["Audit-Id"], item["spec"].pop("time")
    assert time.startswith(item["metadata"]["creationTimestamp"][:-1])
    assert item["spec"] == {
        "user": "admin",
        "agent": "tests/1",
        "verb": "create",
        "version": "v1",
        "resource": "configmaps",
        "namespace": "default",
        "uri": CONFIG_MAPS,
        "bytes": len(orjson.dumps({"metadata": {"name": "a"}})),
        "auditID": audit_id,
    }
    status = item["status"]
    assert (status["code"], status["bytes"]) == (201, len(created.data))
    assert status["revision"] == int(created.body["metadata"]["resourceVersion"])
    assert status["seconds"] > 0
    read = await client.get(f"{REQUESTS}/{item['metadata']['name']}")
    assert read.body["status"] == status


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ("code=404", 1),
        ("code=0", 0),
        ("user=admin,resource=configmaps", 2),
        ("verb=get,name=b,namespace=default", 1),
        ("user!=admin", 1),
        ("resource=secrets", 0),
    ],
)
async def test_requests_are_selected_by_fields(client, selector, count):
    await client.get(f"{CONFIG_MAPS}/b")
    await client.get(CONFIG_MAPS)
    await client.get(CONFIG_MAPS, Authorization="Bearer nobody")
    assert len(await requests(client, selector)) == count


async def test_unknown_field_and_bad_options_are_refused(client):
    unknown = await client.get(f"{REQUESTS}?fieldSelector=color=red")
    assert unknown.status == 400
    fields = "user, agent, verb, group, resource, subresource, namespace, name, code, auditID, fault"
    message = f"field label not supported: color, must be one of metadata.name, {fields}"
    assert unknown.body["message"].endswith(message)
    assert (await client.get(f"{REQUESTS}?continue=x")).status == 400
    assert (await client.get(f"{REQUESTS}?resourceVersion=7&resourceVersionMatch=Exact")).status == 410
    for name in ("x", "1" * 5000, "1-" + "1" * 5000, "-1", "1-"):
        assert (await client.get(f"{REQUESTS}/{name}")).status == 404
    assert (await client.post(REQUESTS, control_object("Request", "a"))).status == 405
    assert (await client.delete(f"{REQUESTS}/00000001")).status == 405


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ("verb=updat", 'did you mean "update"?'),
        ("verb!=apply", 'did you mean "patch"?'),
        ("code=4xx", '"4xx" is not a status code, such as 409: those are 100 to 599'),
        ("code=999", '"999" is not a status code, such as 409: those are 100 to 599'),
        ("code!=99", '"99" is not a status code, such as 409: those are 100 to 599'),
        ("group=aps", 'no group "aps" is served: did you mean "apps"?'),
        ("subresource=stat", 'no resource has a subresource "stat": did you mean "status"?'),
        ("name=a/b", "\"a/b\" is no name: may not contain '/'"),
        ("namespace=Default", "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"),
        (
            "fault=no_fault",
            "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
    ],
)
async def test_value_that_no_request_has_is_refused(client, selector, problem):
    for watch in ("", "&watch=1"):
        answer = await client.get(f"{REQUESTS}?fieldSelector={selector}{watch}")
        assert answer.status == 400
        assert answer.body["message"].startswith(f"field selector {selector}: ")
        assert answer.body["message"].endswith(problem)


async def test_resource_that_is_not_served_is_refused_unless_there_are_requests_for_it(client):
    path = f"{REQUESTS}?fieldSelector=resource=shops"
    for refused in (await client.get(path), await client.get(f"{path}&watch=1")):
        problem = 'field selector resource=shops: no resource "shops" is served'
        assert (refused.status, refused.body["message"]) == (400, problem)
    await client.get("/apis/example.com/v1/shops")
    assert len((await client.get(path)).body["items"]) == 1


def token_of(revision, start):
    return continue_token.encode(ContinueToken(revision, start))


NO_NUMBER = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
NO_MATCH = 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden:'
ARABIC_ONE = "\N{ARABIC-INDIC DIGIT ONE}-a"
NO_TOKEN = "invalid continue token: continue key is not valid: "


@pytest.mark.parametrize("kind", ["changes", "requests"])
@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("resourceVersion=abc", 400, f"invalid resource version: {NO_NUMBER}"),
        ("resourceVersion=abc&watch=1", 500, NO_NUMBER),
        (
            "resourceVersion=9000000000000000000",
            504,
            "Timeout: Too large resource version: 9000000000000000000, ",
        ),
        (f"continue={token_of(1, 'abc')}", 400, f"{NO_TOKEN}abc"),
        (f"continue={token_of(1, ARABIC_ONE)}", 400, f"{NO_TOKEN}{ARABIC_ONE}"),
        (f"continue={token_of(1, '-5')}", 400, f"{NO_TOKEN}-5"),
        (
            f"continue={token_of(9 * 10**18, '5')}",
            504,
            "Timeout: Too large resource version: 9000000000000000000, ",
        ),
        ("continue=ab.c&resourceVersion=5", 400, f"{NO_TOKEN}illegal base64 data at input byte 2"),
        (
            f"continue={token_of(1, '5')}&resourceVersion=5",
            400,
            "specifying resource version is not allowed when using continue",
        ),
        (f"continue={token_of(-1, '5')}", 200, ""),
        (f"continue={token_of(-5, '5')}", 200, ""),
        ("limit=-1", 200, ""),
        ("limit=abc", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ("timeoutSeconds=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "resourceVersionMatch=Exact",
            422,
            f"{NO_MATCH} resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
    ],
)
async def test_options_of_lists_have_the_answers_of_stored_resources(client, kind, query, code, message):
    answer = await client.get(f"{PATH}/{kind}?{query}")
    assert (answer.status, answer.body.get("message", "")[: len(message) or None]) == (code, message)


async def test_audit_id_of_a_client_selects_whatever_it_is(client):
    await client.get(CONFIG_MAPS, Audit_ID="not-an-id")
    assert uris(await requests(client, "auditID=not-an-id")) == [CONFIG_MAPS]


async def test_pages_have_the_requests_of_the_first_page(client):
    for name in "abcde":
        await client.get(f"{CONFIG_MAPS}/{name}")
    path = f"{REQUESTS}?fieldSelector=resource=configmaps,verb=get"
    everything = (await client.get(path)).body
    names, token = [], ""
    while token or not names:
        page = (await client.get(f"{path}&limit=2&continue={token}")).body
        assert page["metadata"]["resourceVersion"] == everything["metadata"]["resourceVersion"]
        names.append([item["spec"]["name"] for item in page["items"]])
        token = page["metadata"].get("continue", "")
        await client.get(f"{CONFIG_MAPS}/later")
    assert names == [["a", "b"], ["c", "d"], ["e"]]


async def test_pages_go_on_after_a_request_that_is_dropped_meanwhile():
    async with running("--control-requests=3") as client:
        for name in "abc":
            await client.get(f"{CONFIG_MAPS}/{name}")
        first = (await client.get(f"{REQUESTS}?limit=2")).body
        await client.get(f"{CONFIG_MAPS}/d")
        await client.get(f"{CONFIG_MAPS}/e")
        second = (await client.get(f"{REQUESTS}?limit=2&continue={first['metadata']['continue']}")).body
    assert [item["spec"]["name"] for item in first["items"] + second["items"]] == ["a", "b", "c"]


async def test_reads_of_requests_are_not_recorded(client):
    before = await requests(client)
    await client.get(f"{REQUESTS}?watch=1&timeoutSeconds=1")
    assert await requests(client) == before


async def test_audit_id_selects_a_request_and_its_changes(client):
    audit_id = (await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})).headers["Audit-Id"]
    (request,) = await requests(client, f"auditID={audit_id}")
    path = f"{PATH}/changes?fieldSelector=auditID={audit_id}"
    (change,) = (await client.get(path)).body["items"]
    assert change["spec"]["revision"] == request["status"]["revision"]


async def test_table_shows_requests(client):
    await client.get(f"{CONFIG_MAPS}/b")
    table = (await client.get(f"{REQUESTS}?fieldSelector=code=404", Accept=TABLE)).body
    shown = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    assert shown == ["Name", "User", "Verb", "Resource", "Namespace", "Object", "Code", "Seconds", "Age"]
    assert table["rows"][0]["cells"][1:7] == ["admin", "get", "configmaps", "default", "b", "404"]
    await client.get("/api/v1/namespaces/default/pods/b/status")
    table = (await client.get(f"{REQUESTS}?fieldSelector=subresource=status,name=b", Accept=TABLE)).body
    assert table["rows"][0]["cells"][3] == "pods/status"


async def test_watch_sends_existing_and_following_requests(client):
    await client.get(f"{CONFIG_MAPS}/a")
    selector = "fieldSelector=resource=configmaps"
    async with client.watch(f"{REQUESTS}?watch=1&{selector}") as events:
        assert (await anext(events))["object"]["spec"]["name"] == "a"
        await client.get(f"{CONFIG_MAPS}/b")
        event = await anext(events)
        assert (event["type"], event["object"]["spec"]["name"]) == ("ADDED", "b")


async def test_watch_of_another_resource_is_shown_while_it_runs(client):
    start = (await client.get(REQUESTS)).body["metadata"]["resourceVersion"]
    async with client.watch(f"{CONFIG_MAPS}?watch=1"):
        (item,) = await requests(client, "verb=watch")
        assert "status" not in item
    await until(lambda: client.server.observation.recorder.published()[-1].has_ended)
    lines = (
        await client.get(f"{REQUESTS}?watch=1&resourceVersion={start}&timeoutSeconds=1")
    ).data.splitlines()
    events = [orjson.loads(line) for line in lines]
    assert [event["type"] for event in events] == ["ADDED"]
    assert events[0]["object"]["status"]["code"] == 200


async def test_watch_resumes_and_gets_410_if_it_is_too_far_behind(client):
    start = (await client.get(REQUESTS)).body["metadata"]["resourceVersion"]
    await client.get(f"{CONFIG_MAPS}/a")
    lines = (
        await client.get(f"{REQUESTS}?watch=1&resourceVersion={start}&timeoutSeconds=1")
    ).data.splitlines()
    assert [orjson.loads(line)["object"]["spec"]["name"] for line in lines] == ["a"]
    old = await client.get(f"{REQUESTS}?watch=1&resourceVersion=7&timeoutSeconds=1")
    assert orjson.loads(old.data)["object"]["code"] == 410


async def test_number_of_requests_is_limited():
    async with running("--control-requests=2") as client:
        for name in "abc":
            await client.get(f"{CONFIG_MAPS}/{name}")
        assert [item["spec"]["name"] for item in await requests(client)] == ["b", "c"]


async def test_watch_ends_when_client_leaves(client):
    async with client.watch(f"{REQUESTS}?watch=1") as events:
        await anext(events)
        assert client.server.observation.recorder.watchers
    await asyncio.wait_for(until(lambda: not client.server.observation.recorder.watchers), 10)


async def test_bodies_are_kept_if_they_are_asked_for():
    async with running("--control-request-bodies=1000000") as client:
        await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"color": "red"}})
        await client.patch(f"{CONFIG_MAPS}/a", {"data": {"color": "blue"}})
        await client.post(CONFIG_MAPS.replace("configmaps", "secrets"), {"stringData": {"a": "hunter2"}})
        await client.get(f"{CONFIG_MAPS}/a")
        created, patched, read = await requests(client, "resource=configmaps")
        assert created["spec"]["body"] == {"metadata": {"name": "a"}, "data": {"color": "red"}}
        assert patched["spec"]["body"] == {"data": {"color": "blue"}}
        assert "body" not in read["spec"]
        (secret,) = await requests(client, "resource=secrets")
        assert secret["spec"]["body"] == {"stringData": {"a": "**********"}}
        one = await client.get(f"{REQUESTS}/{patched['metadata']['name']}")
        assert one.body["spec"]["body"] == {"data": {"color": "blue"}}
        async with client.watch(f"{REQUESTS}?watch=1&fieldSelector=resource=configmaps") as events:
            assert (await anext(events))["object"]["spec"]["body"] == created["spec"]["body"]


def right(verb, resource, group=""):
    return {"apiGroups": [group], "resources": [resource], "verbs": [verb]}


MAY_SEE_REQUESTS = {
    "apiGroups": ["control.mockube.dev"],
    "resources": ["requests", "explanations", "roleadvices", "faults"],
    "verbs": ["get", "list", "watch", "create"],
}


async def let_alice(client, *rules, namespace="", name=""):
    """Let alice do something, everywhere or in a namespace, and return her client."""
    name, kind = name or namespace or "cluster", "Role" if namespace else "ClusterRole"
    folder = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    await client.post(f"{folder}/{kind.lower()}s", {"metadata": {"name": name}, "rules": [*rules]})
    await client.post(f"{folder}/{kind.lower()}bindings", binding)
    await client.server.registry.watch_cache.fresh()
    return Client(client.session, client.url, authorization="Bearer alice")


def uris(items):
    return [item["spec"]["uri"] for item in items]


SECRET_PLAN = "/api/v1/namespaces/default/pods/secret-plan?fieldValidation=Strict"
SHOP_PODS = "/api/v1/namespaces/shop/pods"


async def test_user_sees_own_requests_and_those_for_what_it_may_list():
    async with running_with_roles() as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        alice = await let_alice(client, MAY_SEE_REQUESTS)
        await let_alice(client, right("list", "pods"), namespace="shop")
        for path in (SECRET_PLAN, f"{SHOP_PODS}/a", "/api/v1/pods", "/apis/apps", "/metrics"):
            await client.get(path)
        assert (await alice.get(SECRET_PLAN)).status == 403
        seen = uris(await requests(alice, "verb=get"))
        assert seen == [f"{SHOP_PODS}/a", "/apis/apps", SECRET_PLAN]
        everything = await requests(client, "verb!=create")
        assert {SECRET_PLAN, "/api/v1/pods", "/metrics"} <= {*uris(everything)}
        hidden, *_ = (each["metadata"]["name"] for each in everything if each["spec"]["uri"] == SECRET_PLAN)
        assert (await alice.get(f"{REQUESTS}/{hidden}")).status == 404
        table = (await alice.get(REQUESTS, Accept=TABLE)).data
        assert b"/metrics" not in table


@pytest.mark.parametrize(
    ("path", "own"),
    [
        (f"{PATH}/changes?fieldSelector=resource=secrets,namespace=hidden,name=plan", "*/*"),
        (f"{PATH}/changes?watch=1&timeoutSeconds=1&fieldSelector=name=plan", "*/*"),
        (f"{PATH}/marks/plan", "*/*"),
        ("/api/v1/nodes/n/proxy/containerLogs/hidden/plan/main", "nodes/proxy"),
        ("/api/v1/namespaces/default/services/s/proxy/plan?token=1", "services/proxy"),
        ("/api/v1/namespaces/default/pods/p/exec?command=cat&command=plan", "pods/exec"),
    ],
)
async def test_request_that_names_other_objects_is_hidden_without_rights_to_these(path, own):
    async with running_with_roles() as client:
        rules = (
            right("list", "changes", "control.mockube.dev"),
            right("list", "marks", "control.mockube.dev"),
        )
        rules += tuple(right("list", resource) for resource in ("nodes", "services", "pods"))
        alice = await let_alice(client, MAY_SEE_REQUESTS, *rules)
        audit_id = (await client.get(path)).headers["Audit-Id"]
        found = f"{REQUESTS}?fieldSelector=auditID={audit_id}"
        (recorded,) = (await client.get(found)).body["items"]
        assert recorded["spec"]["uri"] == path
        assert (await alice.get(found)).body["items"] == []
        explanation = control_object("Explanation", spec={"request": {"name": audit_id}})
        for answer in (
            await alice.get(f"{REQUESTS}/{recorded['metadata']['name']}"),
            await alice.post(f"{PATH}/explanations", explanation),
        ):
            assert (answer.status, b"plan" in answer.data) == (404, False)
        own_right = {"apiGroups": ["*"], "resources": ["*"]} if own == "*/*" else right("get", own)
        await let_alice(client, {**own_right, "verbs": ["get", "list"]}, name="more")
        assert uris((await alice.get(found)).body["items"]) == [path]


async def test_watch_sends_own_requests_and_those_for_what_its_user_may_list():
    async with running_with_roles() as client:
        alice = await let_alice(client, MAY_SEE_REQUESTS, right("list", "configmaps"))
        start = (await alice.get(REQUESTS)).body["metadata"]["resourceVersion"]
        async with alice.watch(f"{REQUESTS}?watch=1&resourceVersion={start}") as events:
            await client.get(SECRET_PLAN)
            await client.get(f"{CONFIG_MAPS}/a")
            await alice.get("/api/v1/nodes")
            seen = [(await anext(events))["object"]["spec"]["uri"] for _ in range(2)]
        assert seen == [f"{CONFIG_MAPS}/a", "/api/v1/nodes"]


async def test_request_for_an_unserved_resource_needs_the_right_to_list_it():
    async with running_with_roles() as client:
        bars = "/apis/example.com/v1/namespaces/default/bars"
        alice = await let_alice(client, MAY_SEE_REQUESTS)
        await client.get(bars)
        assert uris(await requests(alice, "resource=bars")) == []
        await let_alice(client, right("list", "bars", "example.com"), namespace="default")
        assert uris(await requests(alice, "resource=bars")) == uris(await requests(client, "resource=bars"))


async def test_explanations_and_advices_are_made_of_requests_that_their_user_may_see():
    async with running_with_roles() as client:
        alice = await let_alice(client, MAY_SEE_REQUESTS)
        refused = await client.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "secret-plan"}})
        assert refused.status == 403
        await client.get(SECRET_PLAN)
        newest, audited = (
            control_object("Explanation", spec={"request": request})
            for request in ({}, {"name": refused.headers["Audit-Id"]})
        )
        assert (await client.post(f"{PATH}/explanations", audited)).status == 201
        assert (await alice.post(f"{PATH}/explanations", audited)).status == 404
        nothing = await alice.post(f"{PATH}/explanations", newest)
        assert nothing.body["message"] == "no request was refused that is still recorded"
        assert (await alice.get("/api/v1/nodes")).status == 403
        own = (await alice.post(f"{PATH}/explanations", newest)).body["status"]
        assert own["cause"] == "no rule lets alice list nodes in the whole cluster"
        advice = control_object("RoleAdvice", spec={"user": "admin"})
        answer = await alice.post(f"{PATH}/roleadvices", advice)
        assert (b"secret-plan" in answer.data, answer.body["status"]["isComplete"]) == (False, False)
        own = (await alice.post(f"{PATH}/roleadvices", {**advice, "spec": {"user": "alice"}})).body["status"]
        assert own["isComplete"]


async def test_fault_shows_no_uri_of_another_user():
    async with running_with_roles() as client:
        alice = await let_alice(client, MAY_SEE_REQUESTS)
        spec = {"match": {"user": "*", "resource": "pods"}, "refuse": {"status": 503}}
        assert (await alice.post(f"{PATH}/faults", control_object("Fault", "f", spec=spec))).status == 201
        assert (await client.get(SECRET_PLAN)).status == 503
        shown = await alice.get(f"{PATH}/faults/f")
        assert (shown.body["status"]["hits"], b"secret-plan" in shown.data) == (1, False)


async def test_body_is_omitted_if_the_user_may_not_get_the_object():
    rules = [
        {"apiGroups": ["control.mockube.dev"], "resources": ["requests"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
    ]
    async with running_with_roles("--control-request-bodies=1000000") as client:
        for name in ("configmaps", "secrets"):
            await client.post(f"/api/v1/namespaces/default/{name}", {"metadata": {"name": "a"}})
        await client.post(f"{RBAC}/clusterroles", {"metadata": {"name": "reader"}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
        binding = {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [subject]}
        await client.post(f"{RBAC}/clusterrolebindings", binding)
        await client.server.registry.watch_cache.fresh()
        alice = Client(client.session, client.url, authorization="Bearer alice")
        (config_map,) = await requests(alice, "resource=configmaps")
        (secret,) = await requests(alice, "resource=secrets")
        assert config_map["spec"]["body"] == {"metadata": {"name": "a"}}
        assert "body" not in secret["spec"]
        assert secret["spec"]["bodyOmitted"] == "it is for whoever may get the object"
