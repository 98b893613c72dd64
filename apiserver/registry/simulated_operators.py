"""The simulated operators of custom resources: programs that should reconcile their objects, and that do nothing.

A resource has one if the service account of a running pod on a simulated node may reconcile it, and no client watches it that
could. Clusters without such a pod, as of a test suite that runs its operator or none, have no simulated operator.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NODES, PODS, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.authz.rbac.policy import NoRole, RBACPolicy
from mockube.apiserver.authz.rbac.rules import ALL
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.storage.stored_object import StoredObject

from .registry import Backend
from .subresources.locations import SIMULATED
from .watch_stream import ClientWatch

GUIDE: Final = "docs/guides/operators.md"
MAX_PODS: Final = 1_000
"""The number of pods of a namespace among which the operator is searched, in the order of their names."""
_OBSERVERS: Final = frozenset(
    {
        "helm",
        "k9s",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubectl",
        "mockube",
        "mozilla",
    }
)
"""The programs that watch resources of any kind and reconcile none, by the name in their user agent. The garbage collector, the
quotas and the packs of this cluster are parts of the controller manager.
"""
_SYSTEM: Final = "system:"
"""The start of the names of roles for components of Kubernetes, of which none reconciles custom resources."""
_WATCH: Final = "watch"
_WRITES: Final = ("update", "patch")


def reason_of(operator: str, resource: Resource) -> str:
    """Return why nothing reconciles the objects of a resource, and what to do."""
    return (
        f"its operator, {operator}, is simulated and does nothing, and no other program watches {resource.group_resource}; "
        f"run the operator as a process, see {GUIDE}"
    )


class _Account(NamedTuple):
    """A service account that may reconcile a resource, in one namespace or, if that is "", in all."""

    is_generic: bool
    """Whether its rules allow the resource without naming its group; accounts whose rules name it come first."""
    namespace: str
    name: str
    scope: str


class SimulatedOperators:
    def __init__(self, policy: RBACPolicy, reconciled: Collection[GroupResource] = ()) -> None:
        """`reconciled` are the resources that packs of this cluster reconcile."""
        self._policy = policy
        self.reconciled = reconciled
        self._generation = -1
        self._accounts: dict[GroupResource, Sequence[_Account]] = {}
        """By resource, for the roles and bindings of `_generation`."""
        self._pods: dict[tuple[str, str], bytes] = {}
        """By namespace and name of an account, the key of its pod that was found last."""

    def may_be_simulated(self, resource: Resource) -> bool:
        """Return whether accounts may reconcile a resource, so that its operator may be simulated."""
        return resource.group_resource not in self.reconciled and bool(
            self._accounts_for(resource.group_resource)
        )

    def operator_of(self, backend: Backend, resource: Resource, namespace: str) -> str:
        """Return the workload that is to reconcile the objects of a resource in a namespace, if it is simulated; "" otherwise."""
        if not self.may_be_simulated(resource) or _is_watched(backend, resource, namespace):
            return ""
        for account in self._accounts_for(resource.group_resource):
            if account.scope in ("", namespace) and (pod := self._find_pod(backend, account)):
                return _workload(pod)
        return ""

    def _accounts_for(self, resource: GroupResource) -> Sequence[_Account]:
        if self._generation != self._policy.generation:
            self._accounts.clear()
            self._generation = self._policy.generation
        accounts = self._accounts.get(resource)
        if accounts is None:
            accounts = self._accounts[resource] = sorted({*_accounts(self._policy, resource)})
        return accounts

    def _find_pod(self, backend: Backend, account: _Account) -> ReadOnlyTree | None:
        """Return a running pod of an account on a simulated node."""
        cache, text = backend.resource_cache(PODS), b'"serviceAccountName":"%b"' % account.name.encode()
        key = account.namespace, account.name
        known_pod = cache.get(self._pods.get(key, b""))
        pods = cache.select(backend.layout.scope(backend.rows[PODS], account.namespace), limit=MAX_PODS)
        for stored in (known_pod, *pods) if known_pod is not None else pods:
            # Most pods of a large namespace are those of other accounts: they are not decoded.
            if text in stored.value and (pod := _simulated_pod(backend, stored, account.name)) is not None:
                self._pods[key] = stored.key
                return pod
        self._pods.pop(key, None)
        return None


def _accounts(policy: RBACPolicy, resource: GroupResource) -> Iterator[_Account]:
    for binding in policy.bindings:
        if binding.role[1].startswith(_SYSTEM):
            continue
        try:
            rules = policy.rules_of(*binding.role, binding.namespace).trees
        except NoRole:
            continue
        is_named = _allows(rules, resource, (_WATCH,), resource.group)
        if is_named or all(_allows(rules, resource, verbs, ALL) for verbs in ((_WATCH,), _WRITES)):
            for namespace, name in binding.accounts:
                yield _Account(not is_named, namespace, name, binding.namespace)


def _allows(
    rules: Sequence[Mapping[str, Any]], resource: GroupResource, verbs: Sequence[str], group: str
) -> bool:
    """Return whether rules with a group allow one of the verbs on all objects of a resource."""
    return any(
        group in (rule.get("apiGroups") or ())
        and not {ALL, *verbs}.isdisjoint(rule.get("verbs") or ())
        and not {ALL, resource.resource}.isdisjoint(rule.get("resources") or ())
        and not rule.get("resourceNames")
        for rule in rules
    )


def _is_watched(backend: Backend, resource: Resource, namespace: str) -> bool:
    """Return whether a client that may reconcile them watches the objects of a namespace."""
    scope = backend.layout.scope(resource, namespace)
    return any(
        isinstance(watcher, ClientWatch)
        and scope.startswith(watcher.prefix)
        and _program(watcher.agent) not in _OBSERVERS
        for watcher in backend.watch_cache.resource_cache(backend.layout.prefix(resource)).watchers
    )


def _program(agent: str) -> str:
    """Return the name of the program that a user agent begins with, such as kubectl of kubectl/v1.37.2 (linux/amd64)."""
    return agent.partition("/")[0].partition(" ")[0].lower()


def _simulated_pod(backend: Backend, stored: StoredObject, account: str) -> ReadOnlyTree | None:
    """Return a pod of an account if it runs on a simulated node."""
    pod = stored.tree()
    spec = pod["spec"]
    node = backend.find_cached(NODES, "", spec.get("nodeName") or "")
    is_simulated = node is not None and meta.annotations(node.tree()).get(SIMULATED[0]) == SIMULATED[1]
    runs = (pod.get("status") or {}).get("phase") == "Running" and not meta.is_deleting(pod)
    return pod if spec.get("serviceAccountName") == account and runs and is_simulated else None


def _workload(pod: ReadOnlyTree) -> str:
    """Return the kind, the namespace and the name of what created a pod: its Deployment, if its ReplicaSet has one."""
    owner = meta.controller_of(pod)
    kind, name = ("Pod", meta.name(pod)) if owner is None else (owner["kind"], owner["name"])
    template_hash = meta.labels(pod).get("pod-template-hash")
    if template_hash and name.endswith(f"-{template_hash}"):
        kind, name = "Deployment", name.removesuffix(f"-{template_hash}")
    return f"{kind} {meta.namespace(pod)}/{name}"
