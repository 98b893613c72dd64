"""Versions that `--runtime-config` enables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import Tree
from mockube.component_base.clock import Clock

from .built_in_kinds import NEWEST, Kinds
from .common.defaults import Table, defaults_table
from .kind import Conversion, Group, Kind
from .resource import v1beta1 as resource_v1beta1
from .resource_config import Overrides, registered_versions

_Convert: TypeAlias = Callable[[Tree], Tree]
_POLICIES: Final = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
_DEVICES: Final = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")

_CLASSES: Final = ("volumeattributesclasses",)
_VALIDATING_POLICIES: Final = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")


class Beta(NamedTuple):
    """Resources of a version that is off by default."""

    group: str
    version: str
    resources: tuple[str, ...]
    minors: tuple[str, str]
    """The first and the last minor release in which this server serves them."""
    lifecycle: str
    """The end of the warning for its clients."""


BETAS: Final = (
    Beta(
        "admissionregistration.k8s.io",
        "v1beta1",
        _POLICIES,
        ("1.34", "1.37"),
        "is deprecated in v1.37+, unavailable in v1.40+; use {group}/v1 {kind}",
    ),
    Beta(
        "admissionregistration.k8s.io",
        "v1beta1",
        _VALIDATING_POLICIES,
        ("1.29", "1.33"),
        "is deprecated in v1.31+, unavailable in v1.34+",
    ),
    Beta(
        "admissionregistration.k8s.io",
        "v1alpha1",
        _POLICIES,
        ("1.32", "1.37"),
        "is deprecated in v1.35+, unavailable in v1.38+",
    ),
    Beta(
        "admissionregistration.k8s.io",
        "v1alpha1",
        _VALIDATING_POLICIES,
        ("1.29", "1.31"),
        "is deprecated in v1.29+, unavailable in v1.32+",
    ),
    Beta(
        "certificates.k8s.io",
        "v1beta1",
        ("clustertrustbundles",),
        ("1.37", "1.37"),
        "is deprecated in v1.37+, unavailable in v1.40+; use {group}/v1 {kind}",
    ),
    Beta(
        "networking.k8s.io",
        "v1beta1",
        ("ipaddresses", "servicecidrs"),
        ("1.33", "1.36"),
        "is deprecated in v1.34+, unavailable in v1.37+",
    ),
    Beta(
        "resource.k8s.io",
        "v1beta2",
        _DEVICES,
        ("1.33", "1.37"),
        "is deprecated in v1.36+, unavailable in v1.39+",
    ),
    Beta(
        "resource.k8s.io",
        "v1beta1",
        _DEVICES,
        ("1.33", "1.37"),
        "is deprecated in v1.35+, unavailable in v1.38+",
    ),
    Beta(
        "storage.k8s.io",
        "v1beta1",
        _CLASSES,
        ("1.31", "1.36"),
        "is deprecated in v1.34+, unavailable in v1.37+; use {group}/v1 {kind}",
    ),
    Beta(
        "storage.k8s.io",
        "v1alpha1",
        _CLASSES,
        ("1.29", "1.34"),
        "is deprecated in v1.32+, unavailable in v1.35+",
    ),
    Beta(
        "storagemigration.k8s.io",
        "v1beta1",
        ("storageversionmigrations",),
        ("1.37", "1.37"),
        "is deprecated in v1.37+, unavailable in v1.40+; use {group}/v1 {kind}",
    ),
)
"""The most stable first. Objects are stored in the stable version, or, before the minor release that has it, in the first of these."""


def switched_kinds(kinds: Kinds, overrides: Overrides, of_minor: Callable[[Kind], Kind]) -> Kinds:
    """Return the kinds of a minor release with the kinds that are switched on, and without those that are switched off.

    The server itself can still read the kinds that are switched off. `of_minor` changes a kind of the newest release to
    what the minor has.
    """
    served = {group.name: group for group in kinds.groups}
    disabled_kinds: list[Kind] = []
    groups = []
    for newest in NEWEST.groups:
        group = served.get(newest.name, Group(name=newest.name, versions=(), defaults=newest.defaults))
        betas = [*_betas(group, newest, kinds.minor, of_minor)]
        stable = [kind for kind in group.kinds if _is_on(kind, overrides, default=True)]
        enabled = [kind for kind in betas if _is_on(kind, overrides, default=False)]
        served_names = {kind.resource.name for kind in (*stable, *enabled)}
        disabled_kinds += [kind for kind in group.kinds if kind not in stable]
        disabled_kinds += [
            kind
            for kind in betas
            if kind not in enabled and kind.conversion is None and kind.resource.name in served_names
        ]
        if stable or enabled:
            groups.append(_with_betas(group, stable, enabled, kinds.minor))
    return Kinds(groups, kinds.hidden, kinds.minor, disabled_kinds)


def _is_on(kind: Kind, overrides: Overrides, *, default: bool) -> bool:
    row = kind.resource
    return overrides.is_enabled(row.group, row.version, row.name, default=default)


def _with_betas(group: Group, stable: Sequence[Kind], enabled: Sequence[Kind], minor: str) -> Group:
    versions = dict.fromkeys((*group.versions, *registered_versions(minor).get(group.name, ())))
    served_versions = {kind.resource.version for kind in (*stable, *enabled)}
    defaults = dict(group.defaults)
    for version in {kind.resource.version for kind in enabled}:
        defaults |= _of_version(group.defaults, version)
    return Group(
        name=group.name,
        versions=tuple(version for version in versions if version in served_versions),
        kinds=(*stable, *enabled),
        defaults=defaults,
    )


def _betas(group: Group, newest: Group, minor: str, of_minor: Callable[[Kind], Kind]) -> Iterator[Kind]:
    """Yield the kinds of all versions that are off by default, in the order of `BETAS`."""
    stored = {kind.resource.name: kind for kind in group.kinds if kind.conversion is None}
    stable = {kind.resource.name: kind for kind in newest.kinds}
    for beta in BETAS:
        if beta.group != group.name or not _is_within(minor, beta.minors):
            continue
        for name in beta.resources:
            if name in stored:
                yield of_minor(_beta_kind(stored[name], beta))
            else:
                stored[name] = _stored_kind(stable[name], beta)
                yield of_minor(stored[name])


def _is_within(minor: str, bounds: tuple[str, str]) -> bool:
    return not minors.is_before(minor, bounds[0]) and not minors.is_before(bounds[1], minor)


def _stored_kind(kind: Kind, beta: Beta) -> Kind:
    """Return the kind of a version that is stored as it is, because its minor release has no stable version."""
    converted = _beta_kind(kind, beta)
    resource = replace(converted.resource, storage_version=None)
    own = {"defaults": converted.defaults, "timed_defaults": converted.timed_defaults}
    return replace(kind, resource=resource, **own)


def _beta_kind(kind: Kind, beta: Beta) -> Kind:
    """Return the kind of a version whose objects are stored as another kind."""
    row, version, lifecycle = kind.resource, beta.version, beta.lifecycle
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
