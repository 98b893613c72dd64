"""What the roles of a user allow and it never did, as far as somebody may see these roles and their bindings."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.rbac.policy import (
    CLUSTER_ROLE_BINDINGS,
    GROUP,
    ROLE_BINDINGS,
    ROLE_RESOURCES,
    ROLES,
    GrantedRole,
    RBACPolicy,
)
from mockube.apiserver.event_loop import QUICK_SLICE
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.user import User
from mockube.component_base.loop import yield_to_loop

from .access import Right, ScopedRight, is_allowed
from .role_rules import ALL_NAMES, UsedRights, has_wildcard, rules_of, single_rights

MAX_COMPARISONS: Final = 200_000
"""The rights of all roles of a user times the used ones with which they are compared."""
_NOT_SHOWN: Final = "Roles and bindings that you may not list"
_TOO_MANY: Final = f"The rights after {MAX_COMPARISONS} comparisons"


class Unused(Struct):
    rights: list[Tree] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)
    """What is not among them."""


class RoleReader:
    """Says which roles and bindings a user may see: those that it may list."""

    def __init__(self, cluster: Registry, user: User) -> None:
        self._cluster, self._user = cluster, user
        self._decisions: dict[tuple[str, str], bool] = {}

    async def may_see(self, role: GrantedRole) -> bool:
        namespace, (kind, _) = role.binding.namespace, role.binding.role
        bindings = ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS
        roles = ROLE_RESOURCES[kind]
        return await self._may_list(bindings, namespace) and await self._may_list(
            roles, namespace if roles == ROLES else ""
        )

    async def _may_list(self, resource: str, namespace: str) -> bool:
        key = resource, namespace
        if key not in self._decisions:
            listed = GroupResource(GROUP, resource)
            self._decisions[key] = await is_allowed(self._cluster, self._user, "list", listed, namespace)
        return self._decisions[key]


class UnusedRights:
    """Compares the roles of one user with what it did."""

    def __init__(self, policy: RBACPolicy, reader: RoleReader) -> None:
        self._policy, self._reader = policy, reader
        self._comparisons = 0

    async def find(self, user: User, used: Collection[ScopedRight]) -> Unused:
        by_scope: dict[str, list[Right]] = defaultdict(list)
        for scope, right in used:
            by_scope[scope].append(right)
        unused, is_hidden = Unused(), False
        for namespace in ("", *self._policy.bound_namespaces(user)):
            uses = UsedRights(by_scope.get(namespace, ()) if namespace else [right for _, right in used])
            for role in self._policy.granted_roles(user, namespace):
                if role.rules is None or role.binding.namespace != namespace:
                    continue
                if not await self._reader.may_see(role):
                    is_hidden = True
                elif found := await self._compare(role, uses):
                    unused.rights.append(found)
            await yield_to_loop()
        is_partial = self._comparisons >= MAX_COMPARISONS
        unused.omitted = [text for text, holds in ((_NOT_SHOWN, is_hidden), (_TOO_MANY, is_partial)) if holds]
        return unused

    async def _compare(self, role: GrantedRole, uses: UsedRights) -> Tree | None:
        """Return what a role allows that was not used; None if there is nothing."""
        rest, wildcards = set[Right](), dict[Right, Collection[Right]]()
        async for granted in self._granted(role, uses):
            covered = uses.covered_by(granted)
            if not covered:
                rest.add(granted)
            elif has_wildcard(granted):
                wildcards[granted] = covered
        return _unused_of(role, rest, wildcards) if rest or wildcards else None

    async def _granted(self, role: GrantedRole, uses: UsedRights) -> AsyncIterator[Right]:
        """Yield the rights of a role one by one, as long as not too many were compared."""
        assert role.rules is not None
        since_yield = 0
        for tree in role.rules.trees:
            for granted in single_rights(tree):
                if self._comparisons >= MAX_COMPARISONS:
                    return
                cost = uses.cost(granted)
                self._comparisons += cost
                since_yield += cost
                if since_yield >= QUICK_SLICE:
                    since_yield = 0
                    await yield_to_loop()
                yield granted


def _unused_of(
    role: GrantedRole, rights: Collection[Right], wildcards: dict[Right, Collection[Right]]
) -> Tree:
    binding, (kind, name) = role.binding, role.binding.role
    place = f"RoleBinding {quote(f'{binding.namespace}/{binding.name}')}"
    unused: Tree = {
        "binding": place if binding.namespace else f"ClusterRoleBinding {quote(binding.name)}",
        "role": f"{kind} {quote(name)}",
    }
    if rights:
        unused["rules"] = [*rules_of(rights, ALL_NAMES)]
    if wildcards:
        unused["wildcards"] = [_wildcard(granted, used) for granted, used in wildcards.items()]
    return unused


def _wildcard(granted: Right, used: Collection[Right]) -> Tree:
    (rule,) = rules_of([granted], 1)
    return {"rule": rule, "used": [*rules_of({*used}, 1)]}
