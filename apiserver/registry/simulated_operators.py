"""The simulated operators of custom resources: programs that should reconcile their objects, and that do nothing.

A resource has one if the service account of a running pod on a simulated node may reconcile it, and no client watches it that
could. Clusters without such a pod, as of a test suite that runs its operator or none, have no simulated operator.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NODES, PODS, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.authz.rbac.policy import Binding, NoRole, RBACPolicy
from mockube.apiserver.authz.rbac.rules import ALL
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.clock import Clock

from .registry import Backend
from .subresources.locations import SIMULATED
from .watch_stream import ClientWatch

GUIDE: Final = "docs/guides/operators.md"
MAX_ACCOUNTS: Final = 20
"""The number of service accounts whose pods are searched; those whose rules name the group come first."""
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
_PAUSE: Final = 20
"""How many times longer than reading the roles and bindings the pause before the next reading is."""
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


class _Grant(NamedTuple):
    """The rules that a binding gives to service accounts."""

    rules: Sequence[Mapping[str, Any]]
    binding: Binding


class SimulatedOperators:
    def __init__(self, policy: RBACPolicy, reconciled: Collection[GroupResource] = ()) -> None:
        """`reconciled` are the resources that packs of this cluster reconcile."""
        self._policy = policy
        self.reconciled = reconciled
        self._generation = -1
        self._reads_again_at = 0.0
        self._grants: dict[str, list[_Grant]] = {}
        """By API group of custom resources, and "*", for the roles and bindings of `_generation`."""
        self._accounts: dict[GroupResource, Sequence[_Account]] = {}
        self._pods: dict[tuple[str, str], bytes] = {}
        """By namespace and name of an account, the key of its pod that was found last."""

    def may_be_simulated(self, backend: Backend, resource: Resource) -> bool:
        """Return whether accounts may reconcile a resource, so that its operator may be simulated."""
        return resource.group_resource not in self.reconciled and bool(
            self._accounts_for(backend, resource.group_resource)
        )

    def operator_of(self, backend: Backend, resource: Resource, namespace: str) -> str:
        """Return the workload that is to reconcile the objects of a resource in a namespace, if it is simulated; "" otherwise."""
        if not self.may_be_simulated(backend, resource) or watching_programs(backend, resource, namespace):
            return ""
        accounts = self._accounts_for(backend, resource.group_resource)
        in_scope = (account for account in accounts if account.scope in ("", namespace))
        pods = (self._find_pod(backend, account) for account in islice(in_scope, MAX_ACCOUNTS))
        return next((_workload(pod) for pod in pods if pod is not None), "")

    def _accounts_for(self, backend: Backend, resource: GroupResource) -> Sequence[_Account]:
        if self._generation != self._policy.generation:
            self._read_policy(backend.clock)
        accounts = self._accounts.get(resource)
        if accounts is None:
            grants = (*self._grants.get(resource.group, ()), *self._grants.get(ALL, ()))
            accounts = self._accounts[resource] = sorted({*_accounts(grants, resource)})
        return accounts

    def _read_policy(self, clock: Clock) -> None:
        """Read all roles and bindings. Where they are many and change often, that takes a small part of the time."""
        began = clock.monotonic()
        if began < self._reads_again_at:
            return
        self._generation = self._policy.generation
        self._accounts.clear()
        self._grants = _grants_by_group(self._policy)
        now = clock.monotonic()
        self._reads_again_at = now + _PAUSE * (now - began)

    def _find_pod(self, backend: Backend, account: _Account) -> ReadOnlyTree | None:
        """Return a running pod of an account on a simulated node."""
        cache, text = backend.resource_cache(PODS), b'"serviceAccountName":"%b"' % account.name.encode()
        key = account.namespace, account.name
        scope = backend.layout.scope(backend.rows[PODS], account.namespace)
        for prefix in filter(None, (self._pods.pop(key, b""), scope)):
            for stored in cache.select(prefix, limit=MAX_PODS):
                # Most pods of a large namespace are those of other accounts: they are not decoded.
                if (
                    text in stored.value
                    and (pod := _simulated_pod(backend, stored, account.name)) is not None
                ):
                    self._pods[key] = stored.key
                    return pod
        return None


def _grants_by_group(policy: RBACPolicy) -> dict[str, list[_Grant]]:
    grants: dict[str, list[_Grant]] = {}
    for binding in policy.bindings:
        if binding.role[1].startswith(_SYSTEM):
            continue
        with suppress(NoRole):
            rules = policy.rules_of(*binding.role, binding.namespace).trees
            for group in {group for rule in rules for group in rule.get("apiGroups") or ()}:
                if "." in group or group == ALL:  # others are built-in
                    grants.setdefault(group, []).append(_Grant(rules, binding))
    return grants


def _accounts(grants: Iterable[_Grant], resource: GroupResource) -> Iterator[_Account]:
    for rules, binding in grants:
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


def watching_programs(backend: Backend, resource: Resource, namespace: str) -> Sequence[str]:
    """Return the programs that watch the objects of a namespace, and that may reconcile them."""
    scope = backend.layout.scope(resource, namespace)
    return [
        _program(watcher.agent)
        for watcher in backend.watch_cache.resource_cache(backend.layout.prefix(resource)).watchers
        if isinstance(watcher, ClientWatch)
        and scope.startswith(watcher.prefix)
        and _program(watcher.agent) not in _OBSERVERS
    ]


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
