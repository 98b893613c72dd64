"""The page of `mockube ui` in a real browser: what it shows of objects, history and requests, and what it does not let in."""

import re

import pytest
from playwright.async_api import expect

from tests.support.processes.page import NARROW, WIDE, one_time_token, opened, visiting
from tests.support.server.apiserver import Client, running, running_with_roles

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
VIEWS = ("health", "cluster", "objects", "timeline", "activity", "controllers")
HOSTILE = '<img src=x onerror="window.entered=1"><script>window.entered=1</script>'


@pytest.fixture
async def client():
    async with running("--history=all", "--disable-admission-plugins=ServiceAccount") as client:
        yield client


def template(**labels):
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}


async def create(client, path, tree, **headers):
    answer = await client.post(path, tree, **headers)
    assert answer.status == 201, answer.body
    return answer.body


def owned_by(owner, kind):
    reference = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return [reference]


async def create_deployment(client, name="web"):
    """Create a Deployment with its ReplicaSet and one pod on a node."""
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template(app=name)}
    deployment = await create(client, DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec})
    metadata = {"name": f"{name}-1", "ownerReferences": owned_by(deployment, "Deployment")}
    replica_set = await create(client, REPLICA_SETS, {"metadata": metadata, "spec": spec})
    metadata = {"name": f"{name}-1-a", "ownerReferences": owned_by(replica_set, "ReplicaSet")}
    pod_spec = {**template()["spec"], "nodeName": "node-1"}
    await create(client, PODS, {"metadata": metadata, "spec": pod_spec})


async def test_objects_are_below_their_owners_and_follow_changes(client):
    await create_deployment(client)
    async with opened(client) as page:
        await page.go("#/objects")
        levels = {}
        for name in ("web", "web-1", "web-1-a"):
            row = page.tab.get_by_role("treeitem").filter(has=page.tab.get_by_text(name, exact=True))
            levels[name] = await row.get_attribute("aria-level")
        assert levels == {"web": "1", "web-1": "2", "web-1-a": "3"}
        await create_deployment(client, "later")
        await page.text("later-1-a")
        await client.delete(f"{PODS}/later-1-a?gracePeriodSeconds=0")
        await page.tab.get_by_text("later-1-a").wait_for(state="detached")


async def test_line_of_yaml_names_its_last_author(client):
    await create_deployment(client)
    bob = {"Impersonate_User": "bob", "Impersonate_Group": "system:masters"}
    await client.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 0}}, **bob)
    async with opened(client) as page:
        await page.go("#/objects?select=deployments.apps|default|web&tab=yaml")
        replicas = page.tab.get_by_role("listitem").filter(has_text="replicas: 0").first
        await replicas.wait_for()
        assert await replicas.locator(".who").get_attribute("title") == "bob"
        image = page.tab.get_by_role("listitem").filter(has_text="image: nginx").first
        assert await image.locator(".who").get_attribute("title") == "admin"
        await replicas.click()
        await page.text("spec.replicas: bob")


async def test_changes_lead_to_the_page_of_then(client):
    await create(client, CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"color": "red"}})
    await client.patch(f"{CONFIG_MAPS}/settings", {"data": {"color": "blue"}})
    async with opened(client) as page:
        await page.go("#/objects?select=configmaps|default|settings&tab=changes")
        await page.text('data.color: "red" → "blue"')
        await page.tab.get_by_role("button", name="diff").last.click()
        await page.text("-   color: red")
        await page.tab.get_by_role("button", name="then").last.click()
        await page.tab.get_by_role("tab", name="YAML").click()
        await page.text("color: red")
        await page.tab.get_by_role("tab", name="Act").click()
        await page.text("This is the past")
        await page.tab.get_by_role("button", name="Back to now").click()
        await page.tab.get_by_role("tab", name="YAML").click()
        await page.text("color: blue")


async def test_slider_shows_objects_of_then(client):
    await create_deployment(client)
    async with opened(client) as page:
        await page.go("#/objects")
        await page.text("web-1-a")
        slider = page.tab.get_by_role("slider", name="The moment that the page shows")
        await page.tab.locator("input[type=range]:enabled").wait_for()
        await slider.press("Home")
        await page.tab.get_by_text("web-1-a").wait_for(state="detached")
        await page.tab.get_by_role("button", name="Back to now").click()
        await page.text("web-1-a")


async def test_hostile_values_run_no_script(client):
    named = {"Impersonate_User": HOSTILE, "Impersonate_Group": "system:masters", "User_Agent": HOSTILE}
    metadata = {"name": "web", "annotations": {"note": HOSTILE}, "labels": {"a": "b"}}
    await create(
        client, CONFIG_MAPS, {"metadata": metadata, "data": {"__proto__": HOSTILE, "a": HOSTILE}}, **named
    )
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "web"},
        "reason": HOSTILE,
        "message": HOSTILE,
    }
    stored = await client.get(f"{CONFIG_MAPS}/web")
    event["involvedObject"]["uid"] = stored.body["metadata"]["uid"]
    await create(client, "/api/v1/namespaces/default/events", event)
    async with opened(client) as page:
        for tab in ("overview", "yaml", "changes", "why", "actions"):
            await page.go(f"#/objects?select=configmaps|default|web&tab={tab}")
            await page.tab.get_by_role("tab", name=tab[:3], selected=True).wait_for()
        await page.go("#/objects?select=configmaps|default|web&tab=yaml")
        await page.text("window.entered=1")
        for view in VIEWS:
            await page.go(f"#/{view}")
            await page.tab.wait_for_timeout(200)
        assert await page.tab.evaluate("window.entered") is None
        assert await page.tab.locator("img[src=x]").count() == 0


async def test_page_without_valid_token_says_so(client):
    token = await one_time_token(client)
    async with visiting(client) as page:
        await page.open(token)
        await page.tab.reload()
        await page.loaded()
        await page.tab.get_by_role("button", name="End").click()
        await page.text("The session has ended")
        await page.tab.goto(
            f"{client.url}/mockube/ui/#token={token}"
        )  # the page loads itself again for a token
        await page.text("No session")


async def test_used_token_is_refused(client):
    token = await one_time_token(client)
    async with visiting(client) as page:
        await page.open(token)
    async with visiting(client) as page:
        await page.tab.goto(f"{client.url}/mockube/ui/#token={token}")
        await page.text("the token was used already")
        assert token not in page.tab.url


async def test_new_url_in_an_open_tab_leaves_no_token_in_the_address(client):
    async with visiting(client) as page:
        await page.open(await one_time_token(client))
        await page.tab.goto(f"{client.url}/mockube/ui/#token={await one_time_token(client)}")
        await page.tab.wait_for_function("!location.hash.includes('token=')")
        await page.loaded()


async def test_objects_stay_while_their_list_fails(client):
    await create_deployment(client)
    async with visiting(client) as page:
        await page.open(await one_time_token(client))
        await page.go("#/objects")
        await page.text("web-1-a")
        await page.tab.route("**/api/v1/pods?*", lambda route: route.fulfill(status=503, body="{}"))
        # The page reads all again when it has missed more than the server remembers.
        await page.tab.route("**/changes?watch*", lambda route: route.fulfill(status=410, body="{}"), times=1)
        client.server.end_streams()
        await page.text("Not shown, because the server refused to list them: pods")
        await page.text("web-1-a")


async def test_session_goes_on_when_another_server_refuses_it(client):
    await create_deployment(client)
    async with visiting(client) as page:
        await page.tab.route("**/api/v1/pods?*", lambda route: route.fulfill(status=401, body="{}"))
        await page.open(await one_time_token(client))
        await page.go("#/objects")
        await page.text("Not shown, because the server refused to list them: pods")
        await page.text("web-1")


async def test_moment_that_cannot_be_read_says_so(client):
    async with visiting(client) as page:
        await page.open(await one_time_token(client))
        await page.go("#/objects?at=no-such-mark")
        await page.text("The moment cannot be read")


async def test_page_connects_again_to_server_that_was_away(client):
    async with visiting(client) as page:
        await page.open(await one_time_token(client))
        await page.go("#/objects")
        await page.tab.route("**/*", lambda route: route.abort())
        client.server.end_streams()
        await page.text("The server does not respond")
        await create_deployment(client)
        await page.tab.unroute("**/*")
        await page.text("web-1-a")
        await page.tab.get_by_text("The server does not respond").wait_for(state="detached")


async def test_keyboard_reaches_everything(client):
    await create_deployment(client)
    async with opened(client) as page:
        keyboard = page.tab.keyboard
        await keyboard.press("3")
        await page.tab.get_by_role("tree").wait_for()
        await keyboard.press("/")
        await keyboard.type("web-1-a")
        await page.tab.get_by_role("tree").focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
            await keyboard.press(key)
        await page.tab.get_by_role("complementary", name="Pod web-1-a").wait_for()
        await page.tab.get_by_role("tab", name="Overview").focus()
        await keyboard.press("ArrowRight")
        await page.tab.get_by_role("tab", name="YAML", selected=True).wait_for()
        await keyboard.press("Escape")
        await page.tab.get_by_role("complementary").wait_for(state="detached")
        await keyboard.press("4")
        await page.tab.get_by_role("application").focus()
        await page.tab.locator("input[type=range]:enabled").wait_for()
        chosen = page.tab.locator(".timeline [role=status]")
        while not await chosen.text_content():  # a key before the first drawing chooses nothing
            await keyboard.press("ArrowDown")
        await keyboard.press("Enter")
        await page.tab.get_by_role("complementary").wait_for()


async def test_enter_in_the_search_opens_the_first_result_and_question_mark_lists_the_keys(client):
    await create_deployment(client, "web-10")
    await create_deployment(client, "web-2")
    async with opened(client) as page:
        keyboard = page.tab.keyboard
        await keyboard.press("/")
        await keyboard.type("deployment")
        await keyboard.press("Enter")
        await page.tab.get_by_role("complementary", name="Deployment web-2").wait_for()
        await page.tab.get_by_role("tab", name="Overview").focus()
        await keyboard.press("?")
        keys = page.tab.get_by_role("dialog", name="Keys")
        await keys.get_by_text("in the search: open the first result").wait_for()
        await keyboard.press("3")  # the page below does not hear it
        await keyboard.press("?")
        await keys.wait_for(state="hidden")
        await page.tab.get_by_role("complementary", name="Deployment web-2").wait_for()
        assert "#/health" in page.tab.url


async def test_page_begins_with_what_is_not_healthy_and_why(client):
    await create_deployment(client)
    spec = {"selector": {"app": "nobody"}, "ports": [{"port": 80}]}
    await create(
        client, "/api/v1/namespaces/default/services", {"metadata": {"name": "lonely"}, "spec": spec}
    )
    async with opened(client) as page:
        health = page.tab.get_by_role("group", name="Not healthy, and why")
        await health.get_by_text("the pod is bound to the node node-1, which does not exist").wait_for()
        await health.get_by_text("no pod in default has the labels of its selector").wait_for()
        await page.text("3 objects, 2 causes")
        await health.get_by_role("button", name="Deployment web").click()
        await page.tab.get_by_role("complementary", name="Deployment web").wait_for()
        await page.go("#/objects")
        await page.tab.get_by_label("not healthy").check()
        await page.text("4 of ")
        row = page.tab.get_by_role("treeitem").filter(has_text="lonely")
        await row.get_by_text("No endpoints").wait_for()
        await page.tab.get_by_role("treeitem").filter(has_text="kubernetes").wait_for(state="detached")


async def test_changes_of_the_status_are_shown_on_demand(client):
    await create_deployment(client)
    status = {"status": {"replicas": 1, "readyReplicas": 1}}
    await client.patch(f"{DEPLOYMENTS}/web/status", status)
    async with opened(client) as page:
        await page.go("#/objects?select=deployments.apps|default|web&tab=changes")
        await page.text("1 of 2 changes are of the status alone")
        await page.tab.get_by_label("also of the status").check()
        await page.text("status.readyReplicas: 1")


IS_WHOLE_AND_NEAR = "node => node.isConnected && node.scrollWidth <= node.clientWidth + 1 && node.getBoundingClientRect().x < 600"


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_state_of_an_object_is_whole_and_beside_its_name(client, viewport):
    await create_deployment(client)
    reason = "CreateContainerConfigError"
    state = {"waiting": {"reason": reason}}
    container = {
        "name": "main",
        "image": "nginx",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }
    await client.patch(f"{PODS}/web-1-a/status", {"status": {"containerStatuses": [container]}})
    async with opened(client, viewport=viewport) as page:
        await page.go("#/objects")
        text = page.tab.get_by_role("treeitem").filter(has_text="web-1-a").get_by_text(reason)
        while not await text.evaluate(IS_WHOLE_AND_NEAR):  # the page may be drawn anew
            await page.tab.evaluate("new Promise(requestAnimationFrame)")


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_views_fit_into_the_window(client, viewport):
    await create(client, NODES, {"metadata": {"name": "node-1"}})
    await create_deployment(client, "a-name-as-long-as-those-of-workloads-become-in-practice")
    async with opened(client, viewport=viewport) as page:
        for view in VIEWS:
            await page.go(f"#/{view}")
            await page.tab.get_by_role("region").first.wait_for()
            assert await page.fits(), view
        for tab in ("overview", "yaml", "changes", "why", "actions"):
            await page.go(f"#/objects?select=nodes||node-1&tab={tab}")
            await page.tab.get_by_role("tabpanel").wait_for()
            assert await page.fits(), tab


async def test_cluster_opens_nodes_and_counts_pods(client):
    for number in range(3):
        await create(client, NODES, {"metadata": {"name": f"node-{number}"}})
    await create_deployment(client)
    async with opened(client) as page:
        await page.go("#/cluster")
        await page.text("3 nodes, 1 pods")
        canvas = page.tab.get_by_role("application")
        await canvas.focus()
        for key in ("ArrowRight", "ArrowRight", "Enter"):
            await page.tab.keyboard.press(key)
        await page.tab.get_by_role("complementary", name="Node node-1").wait_for()


async def test_actions_do_what_rights_allow(client):
    await create_deployment(client)
    async with opened(client) as page:
        await page.go("#/objects?select=deployments.apps|default|web&tab=actions")
        await page.tab.get_by_label("Replicas").fill("4")
        await page.tab.get_by_role("button", name="Scale").click()
        await page.text("It has 4 replicas now.")
        assert (await client.get(f"{DEPLOYMENTS}/web")).body["spec"]["replicas"] == 4
        await page.go("#/cluster")
        await page.tab.get_by_role("button", name="Control").click()
        await page.tab.get_by_label("Name of this moment").fill("before")
        await page.tab.get_by_role("button", name="Mark").click()
        await page.text("before is revision")
        await client.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 9}})
        await page.tab.get_by_label("Revision, Mark or time").fill("before")
        await page.tab.get_by_role("button", name="Rewind").click()
        await page.text("undoes it")
        assert (await client.get(f"{DEPLOYMENTS}/web")).body["spec"]["replicas"] == 4


async def test_user_with_few_rights_sees_what_they_allow():
    async with running_with_roles("--disable-admission-plugins=ServiceAccount") as client:
        await create_deployment(client)
        rules = [
            {"apiGroups": ["control.mockube.dev"], "resources": ["pagetokens"], "verbs": ["create"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list", "get"]},
        ]
        roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        await create(client, roles, {"metadata": {"name": "few"}, "rules": rules})
        binding = {
            "metadata": {"name": "few"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "few"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
        }
        await create(client, f"{roles.removesuffix('roles')}rolebindings", binding)
        alice = Client(client.session, client.url, authorization="Bearer alice")
        async with visiting(client) as page:
            await page.open(await one_time_token(alice))
            await page.text("You may not list Changes")
            await page.go("#/objects?select=deployments.apps|default|web&tab=actions")
            await page.tab.get_by_text("your rights do not allow this").first.wait_for()
            assert await page.tab.get_by_role("button", name="Scale").is_disabled()
            assert await page.tab.get_by_text("web-1-a").count() == 0


async def test_why_panel_shows_cause_and_what_would_change_it(client):
    await create_deployment(client)
    async with opened(client) as page:
        await page.go("#/objects?select=pods|default|web-1-a&tab=why")
        await page.text("the pod is bound to the node node-1, which does not exist")
        await page.text("kubectl -n default delete pod/web-1-a --force")


async def test_cause_that_is_not_known_is_not_shown_as_one(client):
    metadata = {"name": "held", "finalizers": ["example.com/held"]}
    await create(client, CONFIG_MAPS, {"metadata": metadata})
    await client.delete(f"{CONFIG_MAPS}/held")
    async with opened(client) as page:
        await page.go("#/objects?select=configmaps|default|held&tab=why")
        await page.text(re.compile("^Not known: "))


async def test_changes_of_an_object_whose_name_has_a_comma_are_its_own(client):
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    for name in ("a,b=c", "a"):
        await create(client, roles, {"metadata": {"name": name}, "rules": []})
    async with opened(client) as page:
        await page.go("#/objects?select=clusterroles.rbac.authorization.k8s.io||a%2Cb%3Dc&tab=changes")
        await expect(page.tab.locator("ol.changes > li")).to_have_count(1)


async def test_activity_counts_requests(client):
    for _ in range(3):
        await client.get(f"{CONFIG_MAPS}/none", User_Agent="tester")
    async with opened(client) as page:
        await page.go("#/activity")
        await page.text("Refused and failed")
        await page.text("/api/v1/namespaces/default/configmaps/none")


RULES = """
async () => {
  const folder = new URL(".", document.querySelector("script[type=module]").src).href;
  const { patched, noted, Note, notesOfManagers, yamlLines } = await import(`${folder}trees.js`);
  const { difference } = await import(`${folder}views/detail.js`);
  const { hueOf, naturally, rankHues, stateOf, quantity, ageText, inOrderOfInterest } = await import(`${folder}health.js`);
  const { valuesOf } = await import(`${folder}trees.js`);
  const { byCause } = await import(`${folder}causes.js`);
  const people = ["ann", "bob", "carl", "dora", "eve"];
  const hues = (names) => { rankHues(names); return people.map((name) => hueOf(name)); };
  const node = (spec) => stateOf("Node", { metadata: {}, spec, status: { conditions: [{ type: "Ready", status: "True" }] } }).text;
  const service = (ready) => stateOf("Service", { metadata: {}, spec: { type: "NodePort", selector: { a: "b" } } }, { readyEndpoints: () => ready }).text;
  const secret = { kind: "Secret", name: "s" };
  const problem = (name, cause, parts = {}) => ({ object: { kind: "Pod", name }, affected: [], cause, ...parts });
  const origins = [{ object: secret, field: "data.a" }];
  const causes = byCause([
    problem("alone", "it waits"), problem("a", "no key a", { origins }), problem("b", "no pod is ready: no key a", { origins }),
    problem("c", "it ends: it waits", { related: [{ object: { kind: "Pod", name: "alone" } }] }),
  ]);
  const by = (user, type) => [{ object: secret, field: user + type, writes: [{ user, type }] }];
  const ranked = byCause([
    problem("many", "it waits", { affected: ["x", "y", "z"].map((name) => ({ kind: "Pod", name })) }),
    problem("component", "it ends", { origins: by("system:node:a", "MODIFIED"), affected: [{ kind: "Pod", name: "w" }] }),
    problem("created", "it is new", { origins: by("ann", "ADDED") }),
    problem("changed", "it changed", { origins: by("bob", "MODIFIED") }),
    problem("managed", "it is old", { origins: by("", "MODIFIED") }),
  ]);
  const written = valuesOf([
    { type: "ADDED", patch: [{ op: "add", path: "", value: { spec: { "a/b": 1, list: [1] } } }] },
    { type: "MODIFIED", patch: [{ op: "replace", path: "/spec/a~1b", value: 2 }, { op: "add", path: "/spec/list/0", value: 0 }, { op: "remove", path: "/spec/list/1" }] },
  ])[1];
  const before = { a: { "x/y": 1 }, list: [{ name: "p", v: 1 }, { name: "q", v: 2 }] };
  const after = patched(before, [
    { op: "replace", path: "/a/x~1y", value: 2 },
    { op: "add", path: "/__proto__", value: "own" },
    { op: "remove", path: "/list/0" },
  ]);
  const first = noted(undefined, new Note(null), before, "ann");
  const notes = noted(before, first, { ...before, list: [{ name: "q", v: 2 }, { name: "r", v: 3 }] }, "bob");
  const managed = [{ manager: "m", fieldsV1: { "f:list": { 'k:{"name":"q"}': { "f:v": {} } } } }];
  const owned = notesOfManagers(before, managed, (entry) => entry.manager);
  const lines = (tree) => yamlLines(tree).map((line) => "  ".repeat(line.indent) + line.text);
  return {
    before, after: JSON.stringify(after), isPolluted: ({}).own !== undefined,
    authors: [notes.of("a").of("x/y").own, notes.of("list").of(0).of("v").own, notes.of("list").of(1).of("v").own],
    owners: [owned.of("list").of(1).of("v").own, owned.of("list").of(0).of("v").own],
    yaml: lines({ a: "true", b: [{ c: 1, d: [] }, "x: y"], e: "1\\n2", f: {}, g: null, h: "nginx:1" }),
    difference: difference(yamlLines({ a: 1, b: 2, c: 3 }), yamlLines({ a: 1, b: 4, c: 3 })).map((line) => line.sign + line.text),
    gap: difference(yamlLines({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7 }), yamlLines({ a: 9, b: 2, c: 3, d: 4, e: 5, f: 6, g: 9 })).map((line) => line.text),
    natural: ["web-10", "web-2", "web-1"].sort(naturally), nodes: [node({ unschedulable: true, taints: [{}] }), node({ taints: [{}] }), node({})],
    services: [service(0), service(1), service(undefined)], ranked: ranked.map(({ object }) => object.name), causes: causes.map((each) => [each.object.name, each.affected.map(({ name }) => name)]),
    written: written.map(({ field, before, after }) => [field, before ?? null, after ?? null]),
    distinct: new Set(hues(people)).size, isSame: hues([...people, "system:node:a"]).join() === hues([...people].reverse()).join(),
    interest: inOrderOfInterest(["system:node:a", "system:serviceaccount:shop:job", "ann"], new Map([["system:node:a", 9], ["ann", 5], ["system:serviceaccount:shop:job", 1]])),
    states: [
      stateOf("Pod", { metadata: {}, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } }).level,
      stateOf("Pod", { metadata: {}, status: { containerStatuses: [{ state: { waiting: { reason: "CrashLoopBackOff" } } }] } }).level,
      stateOf("Deployment", { metadata: {}, spec: { replicas: 2 }, status: { readyReplicas: 1 } }).text,
      stateOf("Pod", { metadata: { deletionTimestamp: "x" } }).text,
    ],
    quantities: ["500m", "2Gi", "1e3", "x"].map(quantity), ages: [5_000, 125_000, 8e6].map(ageText),
  };
}
"""


async def test_rules_of_trees_and_states(client):
    async with opened(client) as page:
        found = await page.tab.evaluate(RULES)
    assert found == {
        "before": {"a": {"x/y": 1}, "list": [{"name": "p", "v": 1}, {"name": "q", "v": 2}]},
        "after": '{"a":{"x/y":2},"list":[{"name":"q","v":2}],"__proto__":"own"}',
        "isPolluted": False,
        "authors": ["ann", "ann", "bob"],
        "owners": ["m", None],
        "yaml": [
            *('a: "true"', "b:", "- c: 1", "  d: []", '- "x: y"', "e: |", "  1", "  2", "f: {}"),
            *("g: null", 'h: "nginx:1"'),
        ],
        "difference": ["a: 1", "-b: 2", "+b: 4", "c: 3"],
        "gap": ["a: 1", "a: 9", "b: 2", "c: 3", "…", "e: 5", "f: 6", "g: 7", "g: 9"],
        "natural": ["web-1", "web-2", "web-10"],
        "nodes": ["Ready, cordoned", "Ready, tainted", "Ready"],
        "services": ["No endpoints", "NodePort", "NodePort"],
        "causes": [["alone", ["c"]], ["a", ["b"]]],
        "ranked": ["changed", "created", "many", "component", "managed"],
        "written": [["spec.a/b", 1, 2], ["spec.list[0]", None, 0], ["spec.list[1]", 1, None]],
        "distinct": 5,
        "isSame": True,
        "interest": ["ann", "system:serviceaccount:shop:job", "system:node:a"],
        "states": ["good", "bad", "1/2", "Terminating"],
        "quantities": [0.5, 2 << 30, 1000, 0],
        "ages": ["5s", "2m", "2h"],
    }


QUEUE_RULES = """
async () => {
  const folder = new URL(".", document.querySelector("script[type=module]").src).href;
  const { differenceOf, slowestOf } = await import(`${folder}views/controllers.js`);
  const { podsToEvict } = await import(`${folder}views/drain.js`);
  const { endOf } = await import(`${folder}views/containers.js`);
  const { firstIndex } = await import(`${folder}history.js`);
  const { seriesOf, seriesOfSamples } = await import(`${folder}plot.js`);
  const queue = (name, adds, newest = []) => ({ metadata: { name }, status: { adds, retries: 0, reconciliations: adds, newest } });
  const pod = (name, parts = {}) => ({ metadata: { name, ...parts.metadata }, status: { phase: parts.phase ?? "Running" } });
  const pods = [
    pod("plain"), pod("done", { phase: "Succeeded" }), pod("mirror", { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }),
    pod("daemon", { metadata: { ownerReferences: [{ kind: "DaemonSet", controller: true }] } }), pod("ending", { metadata: { deletionTimestamp: "x" } }),
  ];
  const samples = [{ time: 0, values: [["a", 1]] }, { time: 1, values: [["a", 4], ["b", 2]] }, { time: 9e9, values: [["c", 1]] }];
  const sums = (series) => series.map((each) => [each.name, each.total]);
  return {
    grown: differenceOf([queue("a", 3), queue("again", 9)], [queue("a", 5), queue("again", 2), queue("new", 7)]).adds,
    slowest: slowestOf([queue("a", 1, [{ name: "x", seconds: 1 }]), queue("b", 1, [{ name: "y", seconds: 2 }])], "").map((each) => each.queue),
    chosen: slowestOf([queue("a", 1, [{ name: "x", seconds: 1 }]), queue("b", 1, [{ name: "y", seconds: 2 }])], "a").map((each) => each.name),
    evicted: podsToEvict(pods).map((each) => each.metadata.name),
    ends: [{ status: "Success" }, { status: "Failure", details: { causes: [{ reason: "ExitCode", message: "3" }] } }, { status: "Failure", message: "gone" }].map(endOf),
    indexes: [0, 3, 4].map((least) => firstIndex(0, 4, (index) => index >= least)),
    sums: sums(seriesOfSamples(samples, 0, 10)), most: sums(seriesOfSamples(samples, 0, 10, { max: true })),
    rates: Array.from(seriesOfSamples([{ time: 20, since: 16, values: [["a", 8]] }], 0, 120)[0].counts.slice(14, 22)),
    series: sums(seriesOf(Array.from({ length: 20 }, (_, index) => ({ time: 1, name: `n${index % 10}` })), (item) => item.name, 0, 2)).length,
  };
}
"""


async def test_rules_of_queues_plots_and_drains(client):
    async with opened(client) as page:
        found = await page.tab.evaluate(QUEUE_RULES)
    assert found == {
        "grown": [["a", 2], ["again", 0], ["new", 0]],
        "slowest": ["b", "a"],
        "chosen": ["x"],
        "evicted": ["plain"],
        "ends": ["The shell has ended.", "The shell has ended with exit code 3.", "gone"],
        "indexes": [0, 3, 4],
        "sums": [["a", 5], ["b", 2]],
        "most": [["a", 4], ["b", 2]],
        "rates": [0, 0, 2, 2, 2, 2, 0, 0],
        "series": 8,
    }


HISTORY_RULES = """
async () => {
  const folder = new URL(".", document.querySelector("script[type=module]").src).href;
  const { History } = await import(`${folder}history.js`);
  const history = new History();
  const add = (revision, time) => history.add({ revision, time, type: "ADDED", object: { kind: "Pod", resource: "pods", name: `p${revision}` }, patch: [{ value: { metadata: {}, status: {} } }] });
  add(1);
  const isOfNow = history.begin > 1e12 && history.end > 1e12;
  add(2);
  add(3, "2026-01-01T00:00:03.000000Z");
  add(4);
  add(5, "2026-01-01T00:00:05.000000Z");
  const seconds = (times) => Array.from(times, (time) => (time - Date.parse("2026-01-01T00:00:00Z")) / 1000);
  return { isOfNow, times: seconds(history.time.slice(0, 5)), states: seconds(history.lanes.map(({ states }) => states[0].time)), begin: seconds([history.begin]) };
}
"""


async def test_changes_before_the_first_time_are_at_it(client):
    async with opened(client) as page:
        found = await page.tab.evaluate(HISTORY_RULES)
    assert found == {"isOfNow": True, "times": [3, 3, 3, 3, 5], "states": [3, 3, 3, 3, 5], "begin": [3]}


async def test_drain_asks_before_it_evicts_pods_without_controller(client):
    await create(client, NODES, {"metadata": {"name": "node-1"}})
    await create_deployment(client)
    await create(
        client, PODS, {"metadata": {"name": "alone"}, "spec": template()["spec"] | {"nodeName": "node-1"}}
    )
    await create(client, PODS, {"metadata": {"name": "other"}, "spec": template()["spec"]})
    async with opened(client) as page:
        await page.go("#/cluster?view=x&select=nodes||node-1&tab=actions")
        await page.tab.get_by_role("button", name="Drain").click()
        await page.text("Nothing is done: no controller would make these pods again: default/alone")
        assert "unschedulable" not in (await client.get(f"{NODES}/node-1")).body["spec"]
        await page.tab.get_by_label("also pods without a controller").check()
        await page.tab.get_by_role("button", name="Drain").click()
        await page.text("node-1 is cordoned, and 2 of 2 pods are evicted.")


async def test_search_follows_the_browser_back(client):
    async with opened(client) as page:
        await page.go("#/objects?find=web")
        search = page.tab.get_by_role("searchbox")
        await expect(search).to_have_value("web")
        await page.go("#/objects?find=shop")
        await expect(search).to_have_value("shop")
        await page.tab.go_back()
        await expect(search).to_have_value("web")


async def test_server_without_manager_says_that_it_knows_no_queues(client):
    async with opened(client) as page:
        await page.go("#/controllers")
        await page.text("the server does not know where the controller manager is")


async def test_rights_are_asked_for_what_is_shown(client):
    await create_deployment(client)
    async with opened(client) as page:
        asked = []
        page.tab.on(
            "request",
            lambda request: (
                asked.append(request.post_data_json["spec"]["resourceAttributes"])
                if request.url.endswith("/selfsubjectaccessreviews")
                else None
            ),
        )
        await page.go("#/objects?select=pods|default|web-1-a&tab=actions")
        await page.tab.get_by_role("button", name="Delete", disabled=False).wait_for()
        assert [each["verb"] for each in asked] == ["delete"]
        await page.go("#/objects?select=pods|default|web-1-a&tab=actions&at=1")
        await page.text("This is the past")
        assert len(asked) == 1


async def test_history_has_more_than_the_newest_changes(client):
    for number in range(1200):
        await client.post(CONFIG_MAPS, {"metadata": {"name": f"map-{number}"}})
    async with opened(client) as page:
        await page.text(re.compile("^1,2[0-9][0-9] changes$"))
