"""Explanations: posted as reviews are, of what their creator may read."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.control import explanations, fact_collector
from mockube.apiserver.control.fact_collector import FactCollector, FactSources
from mockube.apiserver.event_loop import Worker
from mockube.apiserver.user import User
from tests.support.server.apiserver import running, running_with_roles
from tests.support.server.control import API_VERSION, PATH, causes, control_object

EXPLANATIONS = f"{PATH}/explanations"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}


@pytest.fixture
async def client():
    async with running() as client:
        yield client


def of(kind, name, **fields):
    return control_object("Explanation", spec={"object": {"kind": kind, "name": name, **fields}})


async def allow(client, user, rules):
    roles = "/apis/rbac.authorization.k8s.io/v1"
    await client.post(f"{roles}/clusterroles", {"metadata": {"name": "r"}, "rules": rules})
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "b"}, "roleRef": role, "subjects": [subject]}
    assert (await client.post(f"{roles}/clusterrolebindings", binding)).status == 201


async def add_pending_pod(client):
    """Create a pod that no node takes, and a scheduler's verdict."""
    status = {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}}
    assert (await client.post(NODES, {"metadata": {"name": "a"}, "status": status})).status == 201
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert (await client.post(accounts, {"metadata": {"name": "default"}})).status == 201
    spec = {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "8"}}}]}
    spec["tolerations"] = [{"operator": "Exists"}]
    assert (await client.post(PODS, {**POD, "spec": spec})).status == 201
    verdict = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1: 1 Insufficient cpu.",
    }
    patch = {"status": {"conditions": [verdict]}}
    assert (await client.patch(f"{PODS}/web/status", patch)).status == 200


async def test_explanation_of_pod(client):
    await add_pending_pod(client)
    answer = await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"))
    assert answer.status == 201
    assert answer.body["spec"] == {"object": {"kind": "Pod", "name": "web", "namespace": "default"}}
    status = answer.body["status"]
    assert (status["state"], status["object"]["name"]) == ("Explained", "web")
    assert "the only node cannot take the pod: Insufficient cpu (1)" in status["cause"]
    assert status["nodes"][0]["detail"] == "cpu: requests 8, free 1 of 1"
    assert answer.body["apiVersion"] == API_VERSION


async def add_pod(client, container, status):
    """Create a pod on a node, with the status of its container `c`."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await client.post(accounts, {"metadata": {"name": "default"}})
    await client.post(NODES, {"metadata": {"name": "a"}})
    spec = {"nodeName": "a", "containers": [{"name": "c", "image": "nginx", **container}]}
    assert (await client.post(PODS, {**POD, "spec": spec})).status == 201
    container = {"name": "c", "image": "nginx", "imageID": "", "ready": False, "restartCount": 0, **status}
    patch = {"status": {"containerStatuses": [container], "phase": "Pending"}}
    assert (await client.patch(f"{PODS}/web/status", patch)).status == 200


NEEDS_KEY = {
    "env": [
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
    ]
}
WAITS_FOR_KEY = {"state": {"waiting": {"reason": "CreateContainerConfigError"}}}


async def test_missing_key_of_secret_names_user_that_removed_it(client):
    secrets = "/api/v1/namespaces/default/secrets"
    await client.post(secrets, {"metadata": {"name": "db"}, "data": {"password": "eA==", "user": "eA=="}})
    ada = {"Impersonate-User": "ada", "User-Agent": "kubectl/v1.37.2 (linux)"}
    assert (await client.patch(f"{secrets}/db", {"data": {"password": None}}, **ada)).status == 200
    await client.patch(f"{secrets}/db", {"data": {"user": "eQ=="}})
    await add_pod(client, NEEDS_KEY, WAITS_FOR_KEY)
    status = (await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"))).body["status"]
    assert "needs the key password of the Secret db, which has no such key" in status["cause"]
    origin, reference = status["origins"]
    assert reference["field"] == "spec.containers[c].env[PASSWORD]"
    assert origin["object"] == {"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "db"}
    assert origin["field"] == "data.password"
    assert origin["command"] == "mockube log secret/db -n default --field data.password"
    last, first = origin["writes"]
    assert (last["user"], last["program"], last["verb"]) == ("ada", "kubectl", "patch")
    assert "after" not in last
    assert (first["type"], first["user"]) == ("ADDED", "admin")
    assert "eA==" not in str(status)


async def test_explanation_without_right_to_list_changes_has_no_writes():
    async with running_with_roles() as client:
        secrets = "/api/v1/namespaces/default/secrets"
        await client.post(secrets, {"metadata": {"name": "db"}})
        await add_pod(client, NEEDS_KEY, WAITS_FOR_KEY)
        rules = [
            {"apiGroups": ["control.mockube.dev"], "resources": ["explanations"], "verbs": ["create"]},
            {
                "apiGroups": [""],
                "resources": ["pods", "secrets", "nodes", "events"],
                "verbs": ["get", "list"],
            },
        ]
        await allow(client, "ada", rules)
        ada = {"Impersonate-User": "ada"}
        answer = await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"), **ada)
        status = answer.body["status"]
        assert "which has no such key" in status["cause"]
        assert "writes" not in status["origins"][0]
        assert status["unreadable"] == ["list changes.control.mockube.dev"]
        (remedy,) = [each for each in status["remedies"] if each["text"].startswith("Add the key")]
        assert remedy == {
            "text": "Add the key, such as, for which you lack the right to patch secret db in the namespace default."
        }


ROLES = "/apis/rbac.authorization.k8s.io/v1"


async def refusal_of(client, user):
    """Let a user create a pod without the right to, and return the explanation."""
    refused = await client.post(PODS, POD, **{"Impersonate-User": user})
    assert refused.status == 403
    answer = await client.post(EXPLANATIONS, control_object("Explanation", spec={"request": {}}))
    return answer.body["status"]


async def test_refused_request_names_the_author_of_its_removed_binding():
    async with running_with_roles() as client:
        await allow(client, "ada", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}])
        bob = {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}
        assert (await client.delete(f"{ROLES}/clusterrolebindings/b", **bob)).status == 200
        status = await refusal_of(client, "ada")
        assert status["cause"].endswith("the ClusterRoleBinding b did, until it was deleted")
        (origin,) = status["origins"]
        assert origin["object"]["name"] == "b"
        assert [(each["type"], each["user"]) for each in origin["writes"]] == [
            ("DELETED", "bob"),
            ("ADDED", "admin"),
        ]
        assert origin["command"] == "mockube log clusterrolebinding/b"


async def test_refusal_after_changed_role_offers_its_rules():
    async with running_with_roles() as client:
        await allow(client, "ada", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}])
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
        bob = {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}
        await client.patch(f"{ROLES}/clusterroles/r", {"rules": rules}, **bob)
        status = await refusal_of(client, "ada")
        assert status["cause"].endswith("the ClusterRole r did, until its rules were changed")
        assert status["remedies"][0]["text"].startswith("Undo what bob changed")


async def test_refusal_without_an_earlier_right_has_no_origin():
    async with running_with_roles() as client:
        await allow(client, "ada", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}])
        assert (await client.delete(f"{ROLES}/clusterrolebindings/b")).status == 200
        status = await refusal_of(client, "eve")
        assert "origins" not in status


async def test_managers_of_fields_stand_for_writes_that_are_older_than_the_history(client):
    secrets = "/api/v1/namespaces/default/secrets"
    await client.post(secrets, {"metadata": {"name": "db"}})
    await add_pod(client, NEEDS_KEY, WAITS_FOR_KEY)
    registry = client.server.registry
    await registry.kv.compact(await registry.watch_cache.fresh())
    status = (await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"))).body["status"]
    (write,) = status["origins"][-1]["writes"]
    assert status["origins"][-1]["field"] == "spec.containers[c].env[PASSWORD]"
    assert (write["source"], write["verb"], "user" in write) == ("managedFields", "update", False)
    assert {"program", "time"} <= write.keys()
    assert "before" not in write
    assert '"name":"PASSWORD"' in write["after"]


async def test_remedy_that_the_server_refuses_is_not_offered(client):
    secrets = "/api/v1/namespaces/default/secrets"
    await client.post(secrets, {"metadata": {"name": "db"}, "immutable": True})
    await add_pod(client, NEEDS_KEY, WAITS_FOR_KEY)
    status = (await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"))).body["status"]
    assert "which has no such key" in status["cause"]
    assert not [each for each in status.get("remedies", ()) if "patch" in each.get("command", "")]
    assert (await client.get(f"{secrets}/db")).body.get("data") is None


async def test_resource_whose_definition_is_deleted_meanwhile_has_no_objects(client):
    registry, gone = client.server.registry, GroupResource("example.com", "widgets")
    assert registry.find_cached(gone, "default", "a") is None
    assert registry.list_cached(gone) == ()
    collector = FactCollector(
        registry, registry, FactSources(logs=None, changes=None), User(name="alice"), Worker()
    )
    assert not await collector.may("get", gone, "default", "a")


async def test_explanation_of_fault_names_its_creator(client):
    fault = control_object("Fault", spec={"match": {"user": "nobody"}, "refuse": {"status": 500}})
    fault["metadata"] = {"name": "cut"}
    assert (await client.post(f"{PATH}/faults", fault)).status == 201
    status = (await client.post(EXPLANATIONS, of("Fault", "cut"))).body["status"]
    assert status["cause"] == "it harms requests that match user nobody: refuse"
    (origin,) = status["origins"]
    assert [(each["type"], each["verb"], bool(each["user"])) for each in origin["writes"]] == [
        ("ADDED", "create", True)
    ]
    assert "command" not in origin
    missing = await client.post(EXPLANATIONS, of("Fault", "other"))
    assert missing.status == 404


async def test_invalid_explanations_are_refused(client):
    empty = await client.post(EXPLANATIONS, control_object("Explanation", spec={"object": {}}))
    assert [field for field, _ in causes(empty)] == ["spec.object.kind", "spec.object.name"]
    unknown = await client.post(EXPLANATIONS, of("Nothing", "web"))
    assert causes(unknown) == [("spec.object.kind", 'Not found: "Nothing"')]
    scoped = await client.post(EXPLANATIONS, of("Pod", "web"))
    assert [field for field, _ in causes(scoped)] == ["spec.object.namespace"]
    both = await client.post(EXPLANATIONS, control_object("Explanation", spec={"object": {}, "request": {}}))
    assert causes(both) == [("spec", "Required value: one of object and request")]
    own = await client.post(EXPLANATIONS, of("Mark", "m"))
    assert own.status == 422
    missing = await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"))
    assert (missing.status, missing.body["message"]) == (404, 'pods "web" not found')
    wrong = await client.post(EXPLANATIONS, control_object("Explanation", spec={"object": {"kind": 1}}))
    assert wrong.status == 422


async def test_explanations_are_not_stored(client):
    assert (await client.get(EXPLANATIONS)).status == 405


async def test_explanation_shows_what_its_creator_may_read():
    async with running_with_roles() as client:
        await add_pending_pod(client)
        rules = [
            {"apiGroups": ["control.mockube.dev"], "resources": ["explanations"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        ]
        await allow(client, "ada", rules)
        ada = {"Impersonate-User": "ada"}
        status = (await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"), **ada)).body[
            "status"
        ]
        assert status["cause"] == "default-scheduler found no node: 0/1: 1 Insufficient cpu."
        assert "nodes" not in status
        assert status["unreadable"] == ["list nodes", "list pods", "list namespaces"]
        refused = await client.post(EXPLANATIONS, of("Node", "a"), **ada)
        assert refused.status == 403
        assert refused.body["message"].startswith(
            'nodes "a" is forbidden: User "ada" cannot get resource "nodes"'
        )


async def test_dependents_contents_and_watchers(client):
    await client.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    config_maps = "/api/v1/namespaces/shop/configmaps"
    owner = await client.post(
        config_maps, {"metadata": {"name": "owner", "finalizers": ["foregroundDeletion"]}}
    )
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner.body["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    metadata = {"name": "part", "ownerReferences": [reference], "finalizers": ["example.com/a"]}
    await client.post(config_maps, {"metadata": metadata})
    for name in ("owner", "part"):
        await client.delete(f"{config_maps}/{name}")
    status = (await client.post(EXPLANATIONS, of("ConfigMap", "owner", namespace="shop"))).body["status"]
    assert "1 dependent with blockOwnerDeletion must go first, such as configmap/part" in status["cause"]
    await client.delete("/api/v1/namespaces/shop")
    status = (await client.post(EXPLANATIONS, of("Namespace", "shop"))).body["status"]
    assert "such as configmap/owner" in status["cause"]
    assert [each["object"]["name"] for each in status["related"]] == ["owner", "part"]


async def test_refused_requests():
    async with running_with_roles() as client:
        assert (await client.get(PODS, **{"Impersonate-User": "ada"})).status == 403
        newest = control_object("Explanation", spec={"request": {}})
        status = (await client.post(EXPLANATIONS, newest)).body["status"]
        assert status["cause"] == "no rule lets ada list pods in the namespace default"
        named = control_object("Explanation", spec={"request": {"name": status["object"]["name"]}})
        assert (await client.post(EXPLANATIONS, named)).body["status"]["cause"] == status["cause"]
        record = (await client.get(f"{PATH}/requests/{status['object']['name']}")).body
        assert 'User "ada" cannot list resource "pods"' in record["status"]["message"]
        audited = control_object("Explanation", spec={"request": {"name": record["spec"]["auditID"]}})
        assert (await client.post(EXPLANATIONS, audited)).body["status"] == status
        missing = control_object("Explanation", spec={"request": {"name": "99999999"}})
        assert (await client.post(EXPLANATIONS, missing)).status == 404
        wrong = control_object("Explanation", spec={"request": {"name": "x"}})
        assert (await client.post(EXPLANATIONS, wrong)).status == 404
        refused = await client.post(EXPLANATIONS, newest, **{"Impersonate-User": "ada"})
        assert refused.status == 403


async def test_without_a_refused_request_there_is_nothing_to_explain(client):
    answer = await client.post(EXPLANATIONS, control_object("Explanation", spec={"request": {}}))
    assert (answer.status, answer.body["message"]) == (400, "no request was refused that is still recorded")


async def test_messages_that_may_quote_secrets_are_left_out(client):
    wrong = {"metadata": {"name": "Wrong Name"}, "data": {"a": "eA=="}}
    assert (await client.post("/api/v1/namespaces/default/secrets", wrong)).status == 422
    status = (await client.post(EXPLANATIONS, control_object("Explanation", spec={"request": {}}))).body[
        "status"
    ]
    assert status["cause"] == "the request was answered with 422, and its message was not recorded"


async def test_only_a_fault_that_gave_the_response_is_its_cause(client):
    for effect, cause in (
        ({"delay": {"seconds": 0}}, "it does not exist: configmaps "),
        ({"refuse": {"status": 404}}, "the Fault f was injected, which answered with 404"),
    ):
        match = {"name": "missing"}
        fault = control_object("Fault", "f", spec={"match": match, **effect})
        assert (await client.post(f"{PATH}/faults", fault)).status == 201
        assert (await client.get("/api/v1/namespaces/default/configmaps/missing")).status == 404
        (request,) = (await client.get(f"{PATH}/requests?fieldSelector=fault=f")).body["items"][-1:]
        newest = control_object("Explanation", spec={"request": {"name": request["metadata"]["name"]}})
        status = (await client.post(EXPLANATIONS, newest)).body["status"]
        assert status["cause"].startswith(cause)
        await client.delete(f"{PATH}/faults/f")


async def test_too_many_explanations_at_once_are_refused(client, monkeypatch):
    monkeypatch.setattr(explanations, "MAX_PENDING", 0)
    answer = await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"))
    assert (answer.status, answer.body["message"]) == (429, "0 explanations are in progress")
    monkeypatch.undo()
    assert (await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"))).status == 404


async def test_only_events_about_the_object_are_read(client, monkeypatch):
    await add_pending_pod(client)
    pod = (await client.get(f"{PODS}/web")).body["metadata"]
    for name, uid in (("about-it", pod["uid"]), ("about-another", "another-uid")):
        involved = {"kind": "Pod", "namespace": "default", "name": "web", "uid": uid}
        event = {"metadata": {"name": name}, "involvedObject": involved, "reason": "Why", "message": name}
        assert (await client.post("/api/v1/namespaces/default/events", event)).status == 201
    decoded = []
    readable = fact_collector._readable
    monkeypatch.setattr(
        fact_collector,
        "_readable",
        lambda resource, stored: decoded.append(stored) or readable(resource, stored),
    )
    await client.patch(f"{PODS}/web/status", {"status": {"conditions": None}})
    await client.patch(f"{PODS}/web", {"metadata": {"finalizers": ["a.b/c"]}})
    await client.delete(f"{PODS}/web")
    await client.post(EXPLANATIONS, of("Pod", "web", namespace="default"))
    events = [each.tree() for each in decoded if each.tree()["kind"] == "Event"]
    assert [each["metadata"]["name"] for each in events] == ["about-it"]


async def test_fault_that_cuts_a_node_off_is_named(client):
    await client.post(NODES, {"metadata": {"name": "a"}})
    fault = control_object("Fault", "cut", spec={"match": {"node": "a"}, "partition": {}})
    assert (await client.post(f"{PATH}/faults", fault)).status == 201
    annotations = {"metadata": {"annotations": {"mockube.dev/stop-heartbeats": "fault"}}}
    await client.patch(f"{NODES}/a", annotations)
    status = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
    assert (await client.patch(f"{NODES}/a/status", {"status": status})).status == 200
    found = (await client.post(EXPLANATIONS, of("Node", "a"))).body["status"]
    assert found["cause"] == "the Fault cut has cut the node a off"
    assert [each["command"] for each in found["remedies"]] == ["mockube fault remove cut"]
    assert found["origins"][0]["object"]["name"] == "cut"


async def test_policy_that_denied_a_secret_is_named(client):
    prefix = "/apis/admissionregistration.k8s.io/v1"
    matched = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}
    spec = {
        "matchConstraints": {"resourceRules": [matched]},
        "validations": [
            {
                "expression": "false",
                "message": "no Secrets here",
                "messageExpression": "string(object.data.a)",
            }
        ],
    }
    policy = {"metadata": {"name": "few"}, "spec": spec}
    assert (await client.post(f"{prefix}/validatingadmissionpolicies", policy)).status == 201
    binding = {"metadata": {"name": "b"}, "spec": {"policyName": "few", "validationActions": ["Deny"]}}
    assert (await client.post(f"{prefix}/validatingadmissionpolicybindings", binding)).status == 201
    secret = {"metadata": {"name": "db"}, "data": {"a": "aHVudGVyMg=="}}
    assert (await client.post("/api/v1/namespaces/default/secrets", secret)).status == 422
    newest = control_object("Explanation", spec={"request": {}})
    status = (await client.post(EXPLANATIONS, newest)).body["status"]
    assert status["cause"].startswith("the ValidatingAdmissionPolicy few, bound by b, denied it: ")
    assert "no Secrets here: false" in [each["text"] for each in status["evidence"]]
    assert "aHVudGVyMg" not in str(status)
    assert [each["object"]["name"] for each in status["origins"]] == ["few", "b"]
