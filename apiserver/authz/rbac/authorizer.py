"""Authorize by roles and bindings. Decisions are cached until a role or a binding of the namespace or the cluster changes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mockube.apiserver.authz.chain import (
    NO_OPINION,
    Attributes,
    Decision,
    DecisionAndReason,
    Rule,
    UserRules,
    aggregate,
)
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.user import User

from .policy import RESOURCES, GrantedRole, RBACPolicy, subjects_of
from .rules import ANY_NAME

MAX_USERS: Final = 4096
"""The number of users with cached rights, counted in each namespace; the cache is cleared when it is full."""
MAX_DECISIONS: Final = 1024
"""The number of cached decisions about one user in one namespace."""

_DecisionKey = tuple[str, ...]
_NamedDecisions = Sequence[tuple[frozenset[str], DecisionAndReason]]
"""Decisions with the object names that they apply to, `ANY_NAME` for all."""


class Grants:
    """The current rules of one user in one namespace."""

    def __init__(self, policy: RBACPolicy, user: User, namespace: str) -> None:
        self._subjects = subjects_of(user)
        all_roles = list(policy.granted_roles(user, namespace))
        self._granted: Sequence[GrantedRole] = [role for role in all_roles if role.rules is not None]
        problem = aggregate([role.error for role in all_roles if role.error])
        self._default_decision = (Decision.NO_OPINION, f"RBAC: {problem}") if problem else NO_OPINION
        self._answers: dict[_DecisionKey, _NamedDecisions] = {}

    def decide(self, attributes: Attributes) -> DecisionAndReason:
        if attributes.resource or not attributes.path:
            key: _DecisionKey = (
                attributes.verb,
                attributes.group,
                attributes.resource,
                attributes.subresource,
            )
        else:
            key = attributes.verb, attributes.path
        decisions = self._answers.get(key)
        if decisions is None:
            decisions = self._compute_decisions(key)
        for names, outcome in decisions:
            if not names or attributes.name in names:
                return outcome
        return self._default_decision

    def _compute_decisions(self, key: _DecisionKey) -> _NamedDecisions:
        """Cache and return the decisions of the roles that allow a request, up to the first without resource names."""
        decisions = []
        for binding, rules, _ in self._granted:
            assert rules is not None
            names = rules.names(*key) if len(key) == 4 else ANY_NAME if rules.allows_path(*key) else None
            if names is not None:
                decisions.append((names, (Decision.ALLOW, binding.reason(self._subjects))))
                if not names:
                    break
        if len(self._answers) >= MAX_DECISIONS:
            self._answers.clear()
        self._answers[key] = decisions
        return decisions


class RBAC:
    """The authorizer."""

    def __init__(self, policy: RBACPolicy) -> None:
        self.policy = policy
        self._grants: dict[str, dict[tuple[str, Sequence[str]], Grants]] = {}
        """By namespace, and by user with its groups."""
        self._grants_count = 0

    def decide(self, attributes: Attributes) -> DecisionAndReason:
        user, namespace = attributes.user, attributes.namespace
        key = user.name, tuple(user.groups)
        try:
            grants = self._grants[namespace][key]
        except KeyError:
            if self._grants_count >= MAX_USERS:
                self._clear()
            grants = Grants(self.policy, user, namespace)
            self._grants.setdefault(namespace, {})[key] = grants
            self._grants_count += 1
        return grants.decide(attributes)

    def _clear(self, namespace: str = "") -> None:
        """Drop the cached grants of a namespace, or all, because those of each namespace include the cluster-wide rules."""
        if namespace:
            self._grants_count -= len(self._grants.pop(namespace, ()))
        else:
            self._grants.clear()
            self._grants_count = 0

    def rules(self, user: User, namespace: str) -> UserRules:
        granted = list(self.policy.granted_roles(user, namespace))
        trees = [tree for role in granted if role.rules is not None for tree in role.rules.trees]
        field_names = ("verbs", "apiGroups", "resources", "resourceNames")
        return UserRules(
            resources=[_select_fields(tree, *field_names) for tree in trees if tree.get("resources")],
            paths=[
                _select_fields(tree, "verbs", "nonResourceURLs")
                for tree in trees
                if tree.get("nonResourceURLs")
            ],
            error=aggregate([role.error for role in granted if role.error]),
        )

    # --- watching the watch cache

    def watch(self, caches: Callable[[str], ResourceCache]) -> None:
        """Watch the caches of the four resources from now on. The watch cache must be listed."""
        for resource in RESOURCES:
            cache = caches(resource)
            cache.watchers.add(_Watcher(self, resource, cache.prefix))
        self.reset(caches)

    def reset(self, caches: Callable[[str], ResourceCache]) -> None:
        """Rebuild the policy."""
        self._clear()
        self.policy.clear()
        for resource in RESOURCES:
            for stored in caches(resource):
                self.policy.put(resource, stored)

    def change(self, resource: str, change: Change) -> None:
        namespace = ""  # an object that cannot be read may have changed the rights of all
        try:
            change_policy = self.policy.remove if change.kind is ChangeKind.DELETED else self.policy.put
            namespace = change_policy(resource, change.after)
        finally:
            self._clear(namespace)


def _select_fields(tree: Mapping[str, Any], *names: str) -> Rule:
    return {name: tree[name] for name in names if tree.get(name)}


class _Watcher:
    """Watches the cache of one resource."""

    def __init__(self, authorizer: RBAC, resource: str, prefix: bytes) -> None:
        self.prefix = prefix
        self._authorizer = authorizer
        self._resource = resource

    def handle_change(self, change: Change) -> None:
        self._authorizer.change(self._resource, change)

    def handle_missed_change(self) -> None:
        """Do nothing: a role or binding that cannot be read grants no more than before."""
