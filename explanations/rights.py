"""Which right a request lacks: its action in words, the bindings that do not grant it, and the smallest rule that does."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree, Tree

from .explanation import Evidence, Remedy
from .facts import Facts
from .remedies import created

ROLES: Final = GroupResource("rbac.authorization.k8s.io", "roles")
ROLE_BINDINGS: Final = GroupResource("rbac.authorization.k8s.io", "rolebindings")
CLUSTER_ROLE_BINDINGS: Final = GroupResource("rbac.authorization.k8s.io", "clusterrolebindings")
ACCOUNT: Final = "system:serviceaccount:"
MAX_BINDINGS: Final = 5
_NAMED_VERBS: Final = frozenset({"get", "update", "patch", "delete"})
"""The verbs that a rule can restrict to names."""


def requested_path(spec: ReadOnlyTree) -> str:
    return str(spec.get("uri") or "").partition("?")[0]


def resource_text(spec: ReadOnlyTree) -> str:
    """Return the resource as rules and kubectl name it, such as deployments.apps/scale."""
    group = f".{spec['group']}" if spec.get("group") else ""
    subresource = f"/{spec['subresource']}" if spec.get("subresource") else ""
    return f"{spec.get('resource')}{group}{subresource}"


def action_text(spec: ReadOnlyTree) -> str:
    if not spec.get("resource"):
        return f"{spec.get('verb')} the path {requested_path(spec)}"
    name = f" {spec['name']}" if spec.get("name") else ""
    place = f"in the namespace {spec['namespace']}" if spec.get("namespace") else "in the whole cluster"
    return f"{spec.get('verb')} {resource_text(spec)}{name} {place}"


def bindings_of_user(spec: ReadOnlyTree, facts: Facts) -> Iterator[Evidence]:
    """Yield the bindings that name the user or its groups, and so do not suffice."""
    user, groups = spec.get("user") or "", {*(spec.get("groups") or ())}
    groups = {group for group in groups if not group.startswith("system:")}
    namespace = spec.get("namespace") or ""
    found = [*facts.list(CLUSTER_ROLE_BINDINGS)]
    if namespace:
        found += facts.list(ROLE_BINDINGS, namespace)
    names = [
        f"{each['kind']} {each['metadata']['name']} to {each['roleRef']['kind']} {each['roleRef']['name']}"
        for each in found
        if any(_is_subject(subject, user, groups) for subject in each.get("subjects") or ())
    ]
    for name in names[:MAX_BINDINGS]:
        yield Evidence(text=f"{name} does not allow it", source="bindings")
    if not names and facts.may_list(CLUSTER_ROLE_BINDINGS):
        yield Evidence(text=f"no binding names {user}", source="bindings")


def _is_subject(subject: ReadOnlyTree, user: str, groups: set[str]) -> bool:
    kind, name = subject.get("kind"), subject.get("name") or ""
    if kind == "ServiceAccount":
        return user == f"{ACCOUNT}{subject.get('namespace')}:{name}"
    return name in groups if kind == "Group" else name == user


def granting(spec: ReadOnlyTree) -> Iterator[Remedy]:
    """Yield the smallest role that allows the request, and its binding."""
    user, namespace = spec.get("user") or "", spec.get("namespace") or ""
    is_resource = bool(spec.get("resource"))
    if is_resource:
        rule = [f"--verb={spec.get('verb')}", f"--resource={resource_text(spec)}"]
        if spec.get("name") and spec.get("verb") in _NAMED_VERBS:
            rule.append(f"--resource-name={spec['name']}")
    else:
        rule = [f"--verb={spec.get('verb')}", f"--non-resource-url={requested_path(spec)}"]
    kind = "role" if namespace and is_resource else "clusterrole"
    name = f"{spec.get('verb')}-{spec.get('resource') or 'path'}"
    api_group, namespaced = ROLES.group, namespace if kind == "role" else ""
    api_version, prefix = f"{api_group}/v1", "Cluster" if kind == "clusterrole" else ""
    metadata = {"name": name, **({"namespace": namespaced} if namespaced else {})}
    role: Tree = {
        "apiVersion": api_version,
        "kind": f"{prefix}Role",
        "metadata": metadata,
        "rules": [_rule(spec)],
    }
    yield created("The smallest rule that allows it:", role, kind, name, *rule)
    subject: Tree = {"kind": "User", "name": user, "apiGroup": api_group}
    flag = f"--user={user}"
    if user.startswith(ACCOUNT):
        flag = f"--serviceaccount={user.removeprefix(ACCOUNT)}"
        account_namespace, _, account = user.removeprefix(ACCOUNT).partition(":")
        subject = {"kind": "ServiceAccount", "namespace": account_namespace, "name": account}
    binding: Tree = {
        "apiVersion": api_version,
        "kind": f"{prefix}RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": api_group, "kind": role["kind"], "name": name},
        "subjects": [subject],
    }
    yield created(f"Bind it to {user}:", binding, f"{kind}binding", name, f"--{kind}={name}", flag)


def _rule(spec: ReadOnlyTree) -> Tree:
    """Return the smallest rule that allows a request."""
    if not spec.get("resource"):
        return {"nonResourceURLs": [requested_path(spec)], "verbs": [spec.get("verb")]}
    subresource = f"/{spec['subresource']}" if spec.get("subresource") else ""
    rule: Tree = {
        "apiGroups": [spec.get("group") or ""],
        "resources": [f"{spec['resource']}{subresource}"],
        "verbs": [spec.get("verb")],
    }
    has_name = spec.get("name") and spec.get("verb") in _NAMED_VERBS
    return rule | ({"resourceNames": [spec["name"]]} if has_name else {})
