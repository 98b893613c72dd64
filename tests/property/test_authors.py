"""Every revision that a random sequence of writes makes has one entry in the journal, with the author of its request."""

import asyncio
from collections import Counter, defaultdict
from typing import NamedTuple

import orjson
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.lease_renewals import PATH as RENEWALS
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.server.handler_requests import request_of
from tests.support.stores.calls import events_so_far, head, watch_all

CORE, APPS = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
USERS = ("alice", "bob")
NAMES = ("a", "b")
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "c"}]}}


class Operation(NamedTuple):
    """A request for an object with one of a few names, and what the journal has of it. Several may fail: then it has nothing."""

    method: str
    path: str
    key: str
    """The part of the key that every revision of the request changes."""
    verb: str
    subresource: str = ""
    body: object = None
    media_type: str = "application/json"


def config_map(**fields):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NAME"}, **fields}


POD = {"metadata": {"name": "NAME"}, "spec": {**TEMPLATE["spec"], "terminationGracePeriodSeconds": 5}}
DEPLOYMENT = {
    "metadata": {"name": "NAME"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE},
}
SCALE = {"spec": {"replicas": 3}}
BINDING = {"metadata": {"name": "NAME"}, "target": {"kind": "Node", "name": "node-1"}}
EVICTION = {"metadata": {"name": "NAME"}, "apiVersion": "policy/v1", "kind": "Eviction"}
SERVICE = {"metadata": {"name": "NAME"}, "spec": {"ports": [{"port": 80}]}}
EVENT = {"metadata": {"name": "NAME"}, "involvedObject": {"namespace": "default"}}
LEASE = {"metadata": {"name": "NAME"}, "spec": {"holderIdentity": "NAME"}}
RENEWAL = {"names": ["NAME"], "renewTime": "2030-01-01T00:00:00.000000Z"}
STATUS = {"status": {"phase": "Running"}}
BY_OTHER = {"metadata": {"resourceVersion": "1"}}
FINALIZED, RELEASED = {"metadata": {"finalizers": ["x.example.com/y"]}}, {"metadata": {"finalizers": None}}
POD_PATH, MAP_PATH, SCALE_PATH = (
    f"{CORE}/pods/NAME",
    f"{CORE}/configmaps/NAME",
    f"{APPS}/deployments/NAME/scale",
)
MAPS, PODS, DEPLOYMENTS = "/configmaps/default/", "/pods/default/", "/deployments/default/"
OPERATIONS = (
    Operation("POST", f"{CORE}/configmaps", MAPS, "create", body=config_map()),
    Operation("POST", f"{CORE}/configmaps", MAPS, "create", body={"metadata": {"generateName": "g-"}}),
    Operation("POST", f"{CORE}/configmaps", MAPS, "create", body={"metadata": {"name": "NOT VALID"}}),
    Operation("PUT", MAP_PATH, MAPS, "update", body=config_map(data={"k": "VALUE"})),
    Operation("PATCH", MAP_PATH, MAPS, "patch", body={"data": {"k": "VALUE"}}, media_type=MERGE),
    Operation("PATCH", MAP_PATH, MAPS, "patch", body=BY_OTHER, media_type=MERGE),
    Operation("PATCH", MAP_PATH, MAPS, "patch", body=FINALIZED, media_type=MERGE),
    Operation("PATCH", MAP_PATH, MAPS, "patch", body=RELEASED, media_type=MERGE),
    Operation("PATCH", MAP_PATH, MAPS, "patch", body=config_map(data={"k": "VALUE"}), media_type=APPLY),
    Operation("DELETE", MAP_PATH, MAPS, "delete"),
    Operation("DELETE", f"{CORE}/configmaps", MAPS, "deletecollection"),
    Operation("POST", f"{CORE}/pods", PODS, "create", body=POD),
    Operation("POST", f"{POD_PATH}/binding", PODS, "create", "binding", body=BINDING),
    Operation("PATCH", f"{POD_PATH}/status", PODS, "patch", "status", body=STATUS, media_type=MERGE),
    Operation("POST", f"{POD_PATH}/eviction", PODS, "create", "eviction", body=EVICTION),
    Operation("DELETE", POD_PATH, PODS, "delete"),
    Operation("DELETE", f"{CORE}/pods", PODS, "deletecollection"),
    Operation("POST", f"{APPS}/deployments", DEPLOYMENTS, "create", body=DEPLOYMENT),
    Operation("PATCH", SCALE_PATH, DEPLOYMENTS, "patch", "scale", body=SCALE, media_type=MERGE),
    Operation("POST", f"{CORE}/services", "/services/specs/default/", "create", body=SERVICE),
    Operation("DELETE", f"{CORE}/services/NAME", "/services/specs/default/", "delete"),
    Operation("POST", f"{CORE}/events", "/events/default/", "create", body=EVENT),
    Operation("POST", LEASES, "/leases/kube-node-lease/", "create", body=LEASE),
    Operation("POST", RENEWALS, "/leases/kube-node-lease/", "patch", body=RENEWAL),
)


class Step(NamedTuple):
    operation: Operation
    user: str
    name: str
    dry_run: bool
    manager: str


STEPS = st.builds(
    Step,
    st.sampled_from(OPERATIONS),
    st.sampled_from(USERS),
    st.sampled_from(NAMES),
    st.sampled_from((False, False, False, True)),
    st.sampled_from(("", "me")),
)


async def send(server, step, audit_id):
    """Send the request of a step; return whether it may have made revisions."""
    operation, query = step.operation, {}
    if operation.path != RENEWALS:
        query = {"dryRun": "All"} if step.dry_run else {}
        query |= {"fieldManager": manager_of(step)} if step.manager or operation.media_type == APPLY else {}
    if operation.media_type == APPLY:
        query["force"] = "true"
    text = b"" if operation.body is None else orjson.dumps(operation.body)
    text = text.replace(b"NAME", step.name.encode()).replace(b"VALUE", audit_id.encode())
    target = operation.path.replace("NAME", step.name)
    target += "?" + "&".join(f"{name}={value}" for name, value in query.items()) if query else ""
    headers = {
        "Host": "localhost",
        "Authorization": f"Bearer {step.user}",
        "Content_Type": operation.media_type,
    }
    request = request_of(
        operation.method, target, text, User_Agent=agent_of(step.user), Audit_ID=audit_id, **headers
    )
    response = await server.handler.handle(request)
    return response.status < 400 and "dryRun" not in query


def agent_of(user):
    return f"{user}-tool/v1 (linux)"


def manager_of(step):
    """Return the manager that a step's writes have: a deletion has none, and a renewal that of the agent."""
    if step.operation.method == "DELETE" or step.operation.subresource == "eviction":
        return ""
    return step.manager if step.manager and step.operation.path != RENEWALS else f"{step.user}-tool"


async def prepare(server):
    """Create namespaces and a quota whose usage the server writes at each creation of a pod or ConfigMap."""
    hard = {"pods": "10", "configmaps": "10"}
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
    for method, path, body in (
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}}),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}}),
        ("POST", f"{CORE}/resourcequotas", quota),
        (
            "PUT",
            f"{CORE}/resourcequotas/q/status",
            quota | {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}},
        ),
    ):
        headers = {"Host": "localhost", "Authorization": "Bearer alice", "Content_Type": "application/json"}
        response = await server.handler.handle(request_of(method, path, orjson.dumps(body), **headers))
        assert response.status < 300, response.body


async def check_authors(steps):
    clock = SteppedClock()
    groups = ("system:masters", "system:authenticated")
    trust = Trust(tokens={name: User(name=name, groups=groups) for name in USERS})
    store = MemoryStore(clock=clock)
    base = await head(store)
    flags = ["--authorization-mode=AlwaysAllow", "--disable-admission-plugins=ServiceAccount"]
    async with ApiServer(store, ServerEnvironment(trust=trust, clock=clock), parse(flags, {})) as server:
        await prepare(server)
        journal, accepted = server.registry.journal, {}
        for number, step in enumerate(steps):
            accepted[f"id-{number}"] = await send(server, step, f"id-{number}")
        async with await watch_all(store, start_revision=base + 1) as watch:
            events = await events_so_far(store, watch)
        entries = journal.entries()
    keys = defaultdict(list)
    for event in events:
        keys[event.kv.mod_revision].append(event.kv.key.decode())
    assert Counter(entry.revision for entry in entries) == Counter({*keys})
    for revision, author in ((entry.revision, entry.author) for entry in entries):
        if not author.audit_id:
            assert author.user == "system:apiserver"
        elif author.audit_id in accepted:
            step = steps[int(author.audit_id.removeprefix("id-"))]
            assert accepted[author.audit_id], (step, keys[revision])
            assert any(step.operation.key in key for key in keys[revision]), (step, keys[revision])
            found = author.user, author.agent, author.verb, author.subresource
            operation = step.operation
            verb = "patch" if operation.path == RENEWALS else operation.verb
            assert found == (step.user, agent_of(step.user), verb, operation.subresource)
            if operation.subresource != "eviction":  # whose parts are an update by the server, and a deletion
                assert author.field_manager == manager_of(step)
    return entries


@given(st.lists(STEPS, max_size=25))
def test_each_revision_of_random_writes_has_its_author(steps):
    asyncio.run(check_authors(steps))


def test_each_kind_of_write_is_noted():
    """The sequence in which no request fails but those that must: otherwise the property would hold of nothing."""
    steps = [Step(operation, "bob", "a", dry_run=False, manager="") for operation in OPERATIONS]
    again = Step(OPERATIONS[3], "alice", "b", dry_run=False, manager="me")
    released = [step for step in steps if step.operation.body is RELEASED]
    entries = asyncio.run(check_authors([*steps, *released, again]))
    noted = {(entry.author.verb, entry.author.subresource) for entry in entries}
    assert noted >= {(operation.verb, operation.subresource) for operation in OPERATIONS}
    assert ("update", "status") in noted  # the usage of the quota
