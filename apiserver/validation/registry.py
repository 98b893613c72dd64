"""The rules of all kinds, and the two questions that verbs ask: may it be created, may it become this."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apiserver.resources.spec import Resource
from apiserver.validation import (
    apiregistration,
    autoscaling,
    certificates,
    coordination,
    discovery,
    node,
    objectmeta,
    policy,
    rbac,
    scheduling,
    storage,
)
from apiserver.validation.admissionregistration import policies as admission_policies
from apiserver.validation.admissionregistration import webhooks
from apiserver.validation.apiextensions import definitions
from apiserver.validation.core import configs, events, limit_ranges, namespaces, nodes, quotas
from apiserver.validation.flowcontrol import levels, schemas
from apiserver.validation.kind import Validation
from apiserver.validation.networking import addresses, ingresses, policies
from apiserver.validation.pods import kinds as pods
from apiserver.validation.resource import claims, slices
from apiserver.validation.rules import Tree
from apiserver.validation.services import endpoints, services
from apiserver.validation.volumes import persistent, persistent_claims
from apiserver.validation.workloads import (
    batch,
    controllers,
    daemon_sets,
    deployments,
    replica_sets,
    revisions,
    stateful_sets,
)

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = MappingProxyType(
    {
        **addresses.VALIDATIONS,
        **admission_policies.VALIDATIONS,
        **apiregistration.VALIDATIONS,
        **autoscaling.VALIDATIONS,
        **certificates.VALIDATIONS,
        **claims.VALIDATIONS,
        **configs.VALIDATIONS,
        **coordination.VALIDATIONS,
        **definitions.VALIDATIONS,
        **discovery.VALIDATIONS,
        **events.VALIDATIONS,
        **ingresses.VALIDATIONS,
        **levels.VALIDATIONS,
        **limit_ranges.VALIDATIONS,
        **namespaces.VALIDATIONS,
        **node.VALIDATIONS,
        **nodes.VALIDATIONS,
        **persistent.VALIDATIONS,
        **persistent_claims.VALIDATIONS,
        **pods.VALIDATIONS,
        **policies.VALIDATIONS,
        **policy.VALIDATIONS,
        **quotas.VALIDATIONS,
        **rbac.VALIDATIONS,
        **scheduling.VALIDATIONS,
        **schemas.VALIDATIONS,
        **slices.VALIDATIONS,
        **storage.VALIDATIONS,
        **webhooks.VALIDATIONS,
        **batch.VALIDATIONS,
        **controllers.VALIDATIONS,
        **daemon_sets.VALIDATIONS,
        **deployments.VALIDATIONS,
        **endpoints.VALIDATIONS,
        **replica_sets.VALIDATIONS,
        **revisions.VALIDATIONS,
        **services.VALIDATIONS,
        **stateful_sets.VALIDATIONS,
    }
)

_NONE: Final = Validation(metadata_first=False)
"""Of a kind that is not in the registry: metadata alone is looked at."""


def _metadata(resource: Resource, tree: Tree) -> list[FieldError]:
    return objectmeta.check(tree, objectmeta.LEAST, namespaced=resource.namespaced)


def check_create(resource: Resource, tree: Tree) -> list[FieldError]:
    """What is wrong with a new object: what its kind says of it or, if nothing, what is said of every kind."""
    kind = VALIDATIONS.get(resource.group_kind, _NONE)
    if not kind.metadata_first:
        return [*kind.create(tree)] or _metadata(resource, tree)
    found = objectmeta.check(tree, kind.name, namespaced=resource.namespaced)
    found += kind.create(tree)
    # All else that is said of every kind was asked just now.
    return found or objectmeta.check_name(tree, objectmeta.LEAST)


def check_update(resource: Resource, subresource: str, new: Tree, old: Tree) -> list[FieldError]:
    """What is wrong with a change. Every kind says again what was said of metadata, as it does upstream."""
    kind = VALIDATIONS.get(resource.group_kind, _NONE)
    update = kind.subresources.get(subresource) if subresource else kind.update
    wrong = _metadata(resource, new)
    # Where nothing is wrong with metadata, saying so again would take as long.
    changed = objectmeta.check_update(new, old) if wrong else objectmeta.check_step(new, old)
    found = [*wrong, *changed]
    if update is not None:
        if kind.metadata_first:
            found += [*changed, *objectmeta.check_finalizers(new, kind.name)]
        found += update(new, old)
    return found
