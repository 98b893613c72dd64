"""A user who writes a role or a binding may not grant more rights than it has, unless it may escalate or bind.

Upstream checks this in the storage of these kinds: after the mutating plugins and before validation. So it cannot be
disabled.
"""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import status
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import Attributes, Authorization
from mockube.apiserver.authz.rbac.escalation import FULL_AUTHORITY, PolicyRule, escalation
from mockube.apiserver.authz.rbac.policy import (
    CLUSTER_ROLES,
    GROUP,
    RESOURCES,
    ROLE_RESOURCES,
    ROLES,
    NoRole,
    RBACPolicy,
)
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes
from mockube.apiserver.storage.stored_object import path_segment
from mockube.apiserver.user import MASTERS

from . import plugin
from .plugin import Plugin

_BIND: Final = "bind"
_AGGREGATION: Final = "must have cluster-admin privileges to use the aggregationRule"


class RoleEscalation(Plugin):
    operations = plugin.WRITE
    targets = frozenset((GROUP, resource, "") for resource in RESOURCES)

    def __init__(self, authorization: Authorization, policy: RBACPolicy) -> None:
        self._authorization = authorization
        self._policy = policy

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        """Reject a role or a binding that grants too much; the object is not changed."""
        context, tree, old = attributes.context, attributes.object, attributes.old
        assert tree is not None
        if MASTERS in context.user.groups or (
            old is not None and plugin.changes_only_collector_fields(tree, old)
        ):
            return
        await plugin.wait_for_earlier_writes(registry, attributes)
        if attributes.resource.name in (ROLES, CLUSTER_ROLES):
            self._check_role(attributes, tree, old)
        else:
            self._check_binding(attributes, tree)

    def _check_role(self, attributes: AdmissionAttributes, tree: Tree, old: Tree | None) -> None:
        # A create has no name in its URL, so a permission for one name does not allow it.
        if self._is_allowed(attributes, "escalate", attributes.resource.name, attributes.context.name):
            return
        self._check(attributes, tree.get("rules") or ())
        is_aggregated = _has_aggregation(tree) or (old is not None and _has_aggregation(old))
        if is_aggregated and self._problem(attributes, FULL_AUTHORITY):
            raise plugin.forbidden_object(attributes, _AGGREGATION)

    def _check_binding(self, attributes: AdmissionAttributes, tree: Tree) -> None:
        role = tree.get("roleRef") or {}
        kind, name = role.get("kind", ""), role.get("name", "")
        resource = ROLE_RESOURCES.get(kind)
        if resource is None:
            raise status.Unknown(f'unsupported role reference kind: "{kind}"', code=500)
        if self._is_allowed(attributes, _BIND, resource, name, group=role.get("apiGroup", "")):
            return
        if resource == ROLES and not attributes.namespace:
            raise status.BadRequest("Namespace parameter required.")  # as upstream's storage of Roles
        path_segment(name)  # upstream reads the role from its storage
        try:
            rules = self._policy.rules_of(kind, name, attributes.namespace).trees
        except NoRole as error:
            # As upstream, the error names the resource of the request.
            raise status.not_found(attributes.resource.group_resource, error.name) from error
        self._check(attributes, rules)

    def _is_allowed(
        self, attributes: AdmissionAttributes, verb: str, resource: str, name: str, *, group: str = GROUP
    ) -> bool:
        question = Attributes(
            user=attributes.context.user,
            verb=verb,
            group=group,
            version="*",
            resource=resource,
            namespace=attributes.namespace,
            name=name,
        )
        return self._authorization.is_allowed(question)

    def _check(self, attributes: AdmissionAttributes, rules: Sequence[PolicyRule]) -> None:
        problem = self._problem(attributes, rules)
        if problem:
            raise plugin.forbidden_object(attributes, problem)

    def _problem(self, attributes: AdmissionAttributes, rules: Sequence[PolicyRule]) -> str:
        return escalation(self._policy, attributes.context.user, attributes.namespace, rules)


def _has_aggregation(role: Tree) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))
