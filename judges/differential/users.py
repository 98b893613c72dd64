"""Requests of users other than the administrator: roles are bound to them, and they access others' objects."""

from collections.abc import Generator, Iterator
from random import Random

from judges.differential.conversations import accepted_bodies

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNT = "system:serviceaccount:${ns}:default"
USERS = {
    "viewer": {"Impersonate-User": "viewer"},
    "editor": {"Impersonate-User": "editor"},
    "owner": {"Impersonate-User": "owner", "Impersonate-Group": "team"},
    "granted": {"Impersonate-User": "granted"},
    "nobody": {"Impersonate-User": "nobody"},
    "account": {"Impersonate-User": ACCOUNT},
    "node": {"Impersonate-User": "system:node:n", "Impersonate-Group": "system:nodes"},
    "scheduler": {"Impersonate-User": "system:kube-scheduler"},
    "anonymous": {"Authorization": None},
    "wrong": {"Authorization": "Bearer wrong"},
    "basic": {"Authorization": "Basic YTpi"},
}
ROLES = {"viewer": "view", "editor": "edit", "owner": "admin"}
VERBS = ("get", "list", "create", "update", "patch", "delete", "deletecollection", "watch")
PLACES = (
    *(
        "/",
        "/api",
        "/apis",
        "/version",
        "/healthz",
        "/livez?verbose",
        "/metrics",
        "/openapi/v2",
        "/foo",
        "/flagz",
    ),
    *("/openid/v1/jwks", "/apis/apps/v1", "/apis/nope/v1", "/api/v1/nope", "/logs", "/statusz"),
)
RULES = (
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "update"]},
    {
        "apiGroups": [""],
        "resources": ["secrets", "configmaps"],
        "resourceNames": ["x"],
        "verbs": ["get", "delete"],
    },
    {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate", "bind"]},
    {"apiGroups": [""], "resources": ["*/status"], "verbs": ["patch"]},
)
LISTED = ("", "?fieldSelector=metadata.name%3Dx", "?labelSelector=a%3Db", "?limit=1")
KINDS_OF_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews")


def cases(seed: int, resources) -> Iterator[Generator[dict, dict, None]]:
    """Yield conversations without end; `resources` are keyed by their paths."""
    bodies = accepted_bodies(tables=False)
    number = 0
    while True:
        yield _case(Random(f"{seed}/{number}"), bodies, resources)
        number += 1


def _case(random, bodies, resources):
    yield from _role_grants(random)
    for _ in range(30):
        request = _request(random, bodies, resources)
        user = random.choice([*USERS])
        yield request | {"headers": request.get("headers", {}) | USERS[user]}


def _role_grants(random):
    for user, role in ROLES.items():
        yield _binding(user, {"kind": "ClusterRole", "name": role})
    rules = random.sample(RULES, random.choice((1, 2)))
    role = {"metadata": {"name": "granted"}, "rules": rules}
    yield {"method": "POST", "path": f"{RBAC}/namespaces/${{ns}}/roles", "body": role}
    yield _binding("granted", {"kind": "Role", "name": "granted"})


def _binding(user, role, name=None):
    body = {
        "metadata": {"name": name or f"{user}-is"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }
    return {"method": "POST", "path": f"{RBAC}/namespaces/${{ns}}/rolebindings", "body": body}


def _request(random, bodies, resources):
    match random.choice(("kind", "kind", "kind", "kind", "kind", "escalation", "review", "page")):
        case "page":
            method = random.choice(("GET", "GET", "POST", "HEAD"))
            return {"method": method, "path": random.choice(PLACES)}
        case "review":
            return _review(random)
        case "escalation":
            return _escalation(random)
    path = random.choice([path for path in sorted(bodies) if path in resources])
    body = dict(random.choice(bodies[path]))
    body["metadata"] = dict(body.get("metadata") or {}) | {"name": "x" if "${ns}" in path else "${ns}-x"}
    name = f"{path}/{body['metadata']['name']}"
    inner = resources[path].subresources
    if inner and random.random() < 0.3:
        name += "/" + random.choice(inner)
    if random.random() < 0.1:
        path = path.replace("namespaces/${ns}/", "")
    return _random_request(random, path, name, body)


def _random_request(random, path, name, body):
    patched, language, options = _patch(random, body)
    return random.choice(
        (
            {"method": "GET", "path": name},
            {"method": "GET", "path": path + random.choice(LISTED)},
            {"method": "GET", "path": f"{path}?watch=1&resourceVersion=x"},
            {"method": "POST", "path": path + random.choice(("", "?dryRun=All")), "body": body},
            {"method": "PUT", "path": name, "body": body},
            {
                "method": "PATCH",
                "path": name + options,
                "body": patched,
                "headers": {"Content-Type": language},
            },
            {"method": "DELETE", "path": name},
            {"method": "DELETE", "path": f"{path}?labelSelector=nothing%3Dhere"},
        )
    )


def _patch(random, body):
    kind = random.choice(("merge-patch+json", "apply-patch+yaml", "json-patch+json"))
    patch = [{"op": "add", "path": "/metadata/labels", "value": {}}] if kind.startswith("json-") else body
    return patch, f"application/{kind}", "?fieldManager=f" if kind.startswith("apply") else ""


def _escalation(random):
    rules = random.sample(RULES, random.choice((0, 1, 2)))
    role = {"metadata": {"name": "more"}, "rules": rules}
    there = f"{RBAC}/namespaces/${{ns}}/roles"
    match random.choice(("role", "update", "cluster", "binding", "bound", "aggregation")):
        case "role":
            return {"method": "POST", "path": there, "body": role}
        case "update":
            return {
                "method": "PUT",
                "path": f"{there}/granted",
                "body": role | {"metadata": {"name": "granted"}},
            }
        case "cluster":
            role["metadata"] = {"name": "${ns}-more"}
            return {"method": "POST", "path": f"{RBAC}/clusterroles", "body": role}
        case "aggregation":
            role = {"metadata": {"name": "${ns}-all"}, "aggregationRule": {"clusterRoleSelectors": [{}]}}
            return {"method": "POST", "path": f"{RBAC}/clusterroles", "body": role}
        case "binding":
            kind, name = random.choice(
                (("ClusterRole", "view"), ("ClusterRole", "cluster-admin"), ("Role", "granted"))
            )
            return _binding("nobody", {"kind": kind, "name": name}, f"more-{random.randrange(100)}")
    request = _binding("nobody", {"kind": "ClusterRole", "name": random.choice(("edit", "nope"))}, "${ns}-b")
    return request | {"path": f"{RBAC}/clusterrolebindings"}


def _review(random):
    kind = random.choice(KINDS_OF_REVIEWS)
    spec = {"namespace": "${ns}"} if "rules" in kind else {"resourceAttributes": _attributes(random)}
    if kind == "subjectaccessreviews":
        spec |= {"user": random.choice(("viewer", "editor", "nobody", ACCOUNT))}
        if random.random() < 0.2:
            spec = spec | {"groups": ["system:masters"], "nonResourceAttributes": None}
    return {"method": "POST", "path": f"/apis/authorization.k8s.io/v1/{kind}", "body": {"spec": spec}}


def _attributes(random):
    found = {
        "verb": random.choice((*VERBS, "*", "bind", "")),
        "namespace": random.choice(("${ns}", "default", "")),
    }
    found |= {
        "resource": random.choice(("pods", "deployments", "secrets", "nodes", "*")),
        "group": random.choice(("", "apps", "*")),
    }
    if random.random() < 0.3:
        found |= {"name": "x", "subresource": random.choice(("", "status", "scale"))}
    return found
