"""Versions that `--runtime-config` enables. Their objects are stored in the stable version."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec.structs import replace

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import GroupVersion
from mockube.apiserver.kinds.common.defaults import Table, defaults_table
from mockube.apiserver.kinds.kind import Conversion, Group, Kind
from mockube.apiserver.kinds.registry import NEWEST, Kinds
from mockube.apiserver.kinds.resource import v1beta1 as resource_v1beta1
from mockube.apiserver.kinds.resource_config import REGISTERED, Overrides

_Convert: TypeAlias = Callable[[Tree], Tree]
_POLICIES: Final = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
_DEVICES: Final = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")

BETAS: Final[Mapping[GroupVersion, tuple[tuple[str, ...], str]]] = {
    ("admissionregistration.k8s.io", "v1beta1"): (
        _POLICIES,
        "is deprecated in v1.37+, unavailable in v1.40+; use {group}/v1 {kind}",
    ),
    ("admissionregistration.k8s.io", "v1alpha1"): (
        _POLICIES,
        "is deprecated in v1.35+, unavailable in v1.38+",
    ),
    ("networking.k8s.io", "v1beta1"): (
        ("ipaddresses", "servicecidrs"),
        "is deprecated in v1.34+, unavailable in v1.37+",
    ),
    ("resource.k8s.io", "v1beta2"): (_DEVICES, "is deprecated in v1.36+, unavailable in v1.39+"),
    ("resource.k8s.io", "v1beta1"): (_DEVICES, "is deprecated in v1.35+, unavailable in v1.38+"),
    ("storage.k8s.io", "v1beta1"): (
        ("volumeattributesclasses",),
        "is deprecated in v1.34+, unavailable in v1.37+; use {group}/v1 {kind}",
    ),
}
"""By version, the resources, and the deprecation warning for their clients."""


def switched_kinds(kinds: Kinds, overrides: Overrides) -> Kinds:
    """Return the kinds of a minor release with the kinds that are switched on, and without those that are switched off.

    The server itself can still read the kinds that are switched off.
    """
    groups = [_group(group, overrides, has_betas=kinds is NEWEST) for group in kinds.groups]
    served = {kind.resource for group in groups for kind in group.kinds}
    disabled_kinds = [kind for kind in kinds.all if kind.resource not in served]
    return Kinds((group for group in groups if group.kinds), kinds.hidden, kinds.minor, disabled_kinds)


def _group(group: Group, overrides: Overrides, *, has_betas: bool) -> Group:
    def is_on(kind: Kind, *, default: bool) -> bool:
        row = kind.resource
        return overrides.is_enabled(row.group, row.version, row.name, default=default)

    betas = [kind for kind in _betas(group) if is_on(kind, default=False)] if has_betas else []
    stable = [kind for kind in group.kinds if is_on(kind, default=True)]
    versions = dict.fromkeys((*group.versions, *REGISTERED[group.name]))
    served_versions = {kind.resource.version for kind in (*stable, *betas)}
    defaults = dict(group.defaults)
    for version in {kind.resource.version for kind in betas}:
        defaults |= _of_version(group.defaults, version)
    return Group(
        name=group.name,
        versions=tuple(version for version in versions if version in served_versions),
        kinds=(*stable, *betas),
        defaults=defaults,
    )


def _betas(group: Group) -> Iterator[Kind]:
    for (name, version), (resources, lifecycle) in BETAS.items():
        if name == group.name:
            stable = {kind.resource.name: kind for kind in group.kinds}
            yield from (_beta_kind(stable[resource], version, lifecycle) for resource in resources)


def _beta_kind(kind: Kind, version: str, lifecycle: str) -> Kind:
    row = kind.resource
    api_version = f"{row.group}/{version}"
    resource = replace(
        row,
        version=version,
        storage_version=row.group_version,
        deprecated=f"{api_version} {row.kind} {lifecycle.format(group=row.group, kind=row.kind)}",
        refused_label=row.refused_label.replace(row.api_version, api_version),
    )
    to_stored, from_stored = _CONVERSIONS.get((*resource.group_version, row.name), (_as_it_is, _as_it_is))
    return Kind(
        resource=resource,
        printer=kind.printer,
        conversion=Conversion(
            to_stored=lambda tree: to_stored({**tree, "apiVersion": row.api_version}),
            from_stored=lambda tree: from_stored({**tree, "apiVersion": api_version}),
        ),
        defaults={
            **_of_version(kind.defaults, version),
            **_DEFAULTS.get((*resource.group_version, row.name), {}),
        },
        timed_defaults=_timed_defaults(kind, version),
    )


def _as_it_is(tree: Tree) -> Tree:
    return tree


def _of_version(table: Table, version: str) -> Table:
    """Return the defaults of the same structs of another version."""
    return {name.replace(".v1.", f".{version}."): steps for name, steps in table.items()}


def _timed_defaults(kind: Kind, version: str) -> Callable[[Clock], Table] | None:
    timed = kind.timed_defaults
    return None if timed is None else lambda clock: _of_version(timed(clock), version)


_BINDINGS: Final = "mutatingadmissionpolicybindings"
_SLICE: Final = resource_v1beta1.slice_to_stored, resource_v1beta1.slice_from_stored
_CLAIM: Final = resource_v1beta1.claim_to_stored, resource_v1beta1.claim_from_stored
_TEMPLATE: Final = resource_v1beta1.template_to_stored, resource_v1beta1.template_from_stored
_CONVERSIONS: Final[Mapping[tuple[str, str, str], tuple[_Convert, _Convert]]] = {
    ("resource.k8s.io", "v1beta1", "resourceclaims"): _CLAIM,
    ("resource.k8s.io", "v1beta1", "resourceclaimtemplates"): _TEMPLATE,
    ("resource.k8s.io", "v1beta1", "resourceslices"): _SLICE,
}
_DEFAULTS: Final[Mapping[tuple[str, str, str], Table]] = {
    ("admissionregistration.k8s.io", "v1alpha1", _BINDINGS): defaults_table(
        "io.k8s.api.admissionregistration.v1alpha1", {"ParamRef": {"parameterNotFoundAction": "Deny"}}
    ),
    ("resource.k8s.io", "v1beta1", "resourceclaims"): resource_v1beta1.DEFAULTS,
}
"""The defaults of beta versions, besides those of the same structs in the stable version."""
