"""What users other than the administrator may do: roles are given to them, and they try what others have made."""

from collections.abc import Generator, Iterator
from random import Random

from tests.differential.conversations import accepted_bodies

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
    """Yield conversations without end; `resources` are known by their paths."""
    bodies = accepted_bodies(tables=False)
    number = 0
    while True:
        yield _case(Random(f"{seed}/{number}"), bodies, resources)
        number += 1


def _case(chance, bodies, resources):
    yield from _granted(chance)
    for _ in range(30):
        request = _request(chance, bodies, resources)
        user = chance.choice([*USERS])
        yield request | {"headers": request.get("headers", {}) | USERS[user]}


def _granted(chance):
    for user, role in ROLES.items():
        yield _binding(user, {"kind": "ClusterRole", "name": role})
    rules = chance.sample(RULES, chance.choice((1, 2)))
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


def _request(chance, bodies, resources):
    match chance.choice(("kind", "kind", "kind", "kind", "kind", "escalation", "review", "page")):
        case "page":
            method = chance.choice(("GET", "GET", "POST", "HEAD"))
            return {"method": method, "path": chance.choice(PLACES)}
        case "review":
            return _review(chance)
        case "escalation":
            return _escalation(chance)
    path = chance.choice([path for path in sorted(bodies) if path in resources])
    body = dict(chance.choice(bodies[path]))
    body["metadata"] = dict(body.get("metadata") or {}) | {"name": "x" if "${ns}" in path else "${ns}-x"}
    name = f"{path}/{body['metadata']['name']}"
    inner = resources[path].subresources
    if inner and chance.random() < 0.3:
        name += "/" + chance.choice(inner)
    if chance.random() < 0.1:
        path = path.replace("namespaces/${ns}/", "")
    return _of_verb(chance, path, name, body)


def _of_verb(chance, path, name, body):
    patched, language, options = _patch(chance, body)
    return chance.choice(
        (
            {"method": "GET", "path": name},
            {"method": "GET", "path": path + chance.choice(LISTED)},
            {"method": "GET", "path": f"{path}?watch=1&resourceVersion=x"},
            {"method": "POST", "path": path + chance.choice(("", "?dryRun=All")), "body": body},
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


def _patch(chance, body):
    kind = chance.choice(("merge-patch+json", "apply-patch+yaml", "json-patch+json"))
    patch = [{"op": "add", "path": "/metadata/labels", "value": {}}] if kind.startswith("json-") else body
    return patch, f"application/{kind}", "?fieldManager=f" if kind.startswith("apply") else ""


def _escalation(chance):
    rules = chance.sample(RULES, chance.choice((0, 1, 2)))
    role = {"metadata": {"name": "more"}, "rules": rules}
    there = f"{RBAC}/namespaces/${{ns}}/roles"
    match chance.choice(("role", "update", "cluster", "binding", "bound", "aggregation")):
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
            kind, name = chance.choice(
                (("ClusterRole", "view"), ("ClusterRole", "cluster-admin"), ("Role", "granted"))
            )
            return _binding("nobody", {"kind": kind, "name": name}, f"more-{chance.randrange(100)}")
    request = _binding("nobody", {"kind": "ClusterRole", "name": chance.choice(("edit", "nope"))}, "${ns}-b")
    return request | {"path": f"{RBAC}/clusterrolebindings"}


def _review(chance):
    kind = chance.choice(KINDS_OF_REVIEWS)
    spec = {"namespace": "${ns}"} if "rules" in kind else {"resourceAttributes": _attributes(chance)}
    if kind == "subjectaccessreviews":
        spec |= {"user": chance.choice(("viewer", "editor", "nobody", ACCOUNT))}
        if chance.random() < 0.2:
            spec = spec | {"groups": ["system:masters"], "nonResourceAttributes": None}
    return {"method": "POST", "path": f"/apis/authorization.k8s.io/v1/{kind}", "body": {"spec": spec}}


def _attributes(chance):
    found = {
        "verb": chance.choice((*VERBS, "*", "bind", "")),
        "namespace": chance.choice(("${ns}", "default", "")),
    }
    found |= {
        "resource": chance.choice(("pods", "deployments", "secrets", "nodes", "*")),
        "group": chance.choice(("", "apps", "*")),
    }
    if chance.random() < 0.3:
        found |= {"name": "x", "subresource": chance.choice(("", "status", "scale"))}
    return found
