"""The APIs that `--runtime-config` enables and disables: kube-apiserver's rules, defaults and errors."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Final, TypeAlias

from msgspec import Struct, field

from mockube.apimachinery.gotext import parse_bool, quote
from mockube.apimachinery.schema import minors

from .api_resource import GroupVersion

Pair: TypeAlias = tuple[str, str]
"""A key of the flag and its value."""
GroupVersionResource: TypeAlias = tuple[str, str, str]
"""A resource's group, version and plural name."""

NO_GATES: Final = frozenset[str]()
_VERSIONS: Final = {
    "": "v1",
    "admission.k8s.io": "v1 v1beta1",
    "admissionregistration.k8s.io": "v1 v1beta1 v1alpha1",
    "apiextensions.k8s.io": "v1 v1beta1",
    "apiregistration.k8s.io": "v1 v1beta1",
    "apps": "v1 v1beta2 v1beta1",
    "authentication.k8s.io": "v1 v1beta1 v1alpha1",
    "authorization.k8s.io": "v1 v1beta1",
    "autoscaling": "v2 v1",
    "batch": "v1 v1beta1",
    "certificates.k8s.io": "v1 v1beta1 v1alpha1",
    "coordination.k8s.io": "v1 v1beta1 v1alpha2",
    "discovery.k8s.io": "v1 v1beta1",
    "events.k8s.io": "v1 v1beta1",
    "extensions": "v1beta1",
    "flowcontrol.apiserver.k8s.io": "v1 v1beta3 v1beta2 v1beta1",
    "imagepolicy.k8s.io": "v1alpha1",
    "internal.apiserver.k8s.io": "v1alpha1",
    "lifecycle.k8s.io": "v1alpha1",
    "networking.k8s.io": "v1 v1beta1",
    "node.k8s.io": "v1 v1beta1 v1alpha1",
    "policy": "v1 v1beta1",
    "rbac.authorization.k8s.io": "v1 v1beta1 v1alpha1",
    "resource.k8s.io": "v1 v1beta2 v1beta1 v1alpha3",
    "scheduling.k8s.io": "v1 v1beta1 v1alpha3",
    "storage.k8s.io": "v1 v1beta1 v1alpha1",
    "storagemigration.k8s.io": "v1 v1beta1",
}
REGISTERED: Final[Mapping[str, tuple[str, ...]]] = {
    group: tuple(versions.split()) for group, versions in _VERSIONS.items()
}
"""By group, the versions that kube-apiserver has types for, in the order of discovery. It serves few of the old ones."""
_NOT_SERVED: Final = """
certificates.k8s.io/v1beta1 podcertificaterequests 1.37 1.37
authentication.k8s.io/v1beta1 selfsubjectreviews 1.29 1.32
authentication.k8s.io/v1alpha1 selfsubjectreviews 1.29 1.31
coordination.k8s.io/v1beta1 leasecandidates 1.33 1.37
coordination.k8s.io/v1alpha2 leasecandidates 1.32 1.37
coordination.k8s.io/v1alpha1 leasecandidates 1.31 1.31
internal.apiserver.k8s.io/v1alpha1 storageversions 1.29 1.37
networking.k8s.io/v1beta1 ipaddresses servicecidrs 1.31 1.32
networking.k8s.io/v1alpha1 ipaddresses servicecidrs 1.29 1.30
resource.k8s.io/v1beta2 devicetaintrules 1.36 1.37
resource.k8s.io/v1beta1 deviceclasses resourceclaims resourceclaimtemplates resourceslices 1.32 1.32
resource.k8s.io/v1alpha3 devicetaintrules 1.33 1.37
resource.k8s.io/v1alpha3 resourcepoolstatusrequests 1.36 1.37
resource.k8s.io/v1alpha3 deviceclasses resourceclaims resourceclaimtemplates resourceslices 1.31 1.33
resource.k8s.io/v1alpha3 podschedulingcontexts 1.31 1.31
resource.k8s.io/v1alpha2 podschedulingcontexts resourceclaims resourceclaimtemplates resourceclasses 1.29 1.30
resource.k8s.io/v1alpha2 resourceclaimparameters resourceclassparameters resourceslices 1.30 1.30
"""
_BEHIND_GATES: Final = {
    "CompositePodGroup": "scheduling.k8s.io/v1alpha3 compositepodgroups 1.37 1.37",
    "EvictionRequestAPI": "lifecycle.k8s.io/v1alpha1 evictions evictionrequests 1.37 1.37",
    "GenericWorkload": """
scheduling.k8s.io/v1beta1 workloads podgroups 1.37 1.37
scheduling.k8s.io/v1alpha3 workloads podgroups 1.37 1.37
scheduling.k8s.io/v1alpha2 workloads podgroups 1.36 1.36
scheduling.k8s.io/v1alpha1 workloads 1.35 1.35
""",
}
"""What kube-apiserver serves in enabled versions if a gate is on. Without the gate it serves none of it."""
_UNTIL: Final = {
    "coordination.k8s.io": {"v1alpha1": "1.31"},
    "networking.k8s.io": {"v1alpha1": "1.33"},
    "resource.k8s.io": {"v1alpha2": "1.30"},
    "scheduling.k8s.io": {"v1alpha2": "1.36", "v1alpha1": "1.35"},
    "storagemigration.k8s.io": {"v1alpha1": "1.34"},
}
"""The last minor release that has types for a version that the newest does not have."""
_ADDED_IN: Final = {
    ("lifecycle.k8s.io", "v1alpha1"): "1.37",
    ("scheduling.k8s.io", "v1alpha3"): "1.37",
    ("storagemigration.k8s.io", "v1"): "1.37",
}
"""The first minor release that has types for a version."""


def _read_not_served(text: str) -> Iterator[tuple[GroupVersionResource, str, str]]:
    for line in text.split("\n"):
        api_version, *names, since, until = line.split() or ("", "", "")
        group, _, version = api_version.partition("/")
        for name in filter(None, names):
            yield (group, version, name), since, until


@cache
def not_served(minor: str, gates: frozenset[str] = NO_GATES) -> Collection[GroupVersionResource]:
    """Return the resources that kube-apiserver of a minor release, with these gates on, can serve and this server cannot."""
    texts = [_NOT_SERVED, *(text for gate, text in _BEHIND_GATES.items() if gate in gates)]
    return [
        name
        for text in texts
        for name, since, until in _read_not_served(text)
        if not minors.is_before(minor, since) and not minors.is_before(until, minor)
    ]


@cache
def registered_versions(minor: str) -> Mapping[str, tuple[str, ...]]:
    """Return the versions of each group that a minor release has types for; an older one has most of the newest, too."""
    if minor == minors.NEWEST:
        return REGISTERED
    registered = {
        group: (
            *(version for version in versions if _is_known((group, version), minor)),
            *(
                version
                for version, until in _UNTIL.get(group, {}).items()
                if not minors.is_before(until, minor)
            ),
        )
        for group, versions in REGISTERED.items()
    }
    return {group: versions for group, versions in registered.items() if versions}


def _is_known(group_version: GroupVersion, minor: str) -> bool:
    return not minors.is_before(minor, _ADDED_IN.get(group_version, minor))


_SERVED_IN_PART: Final = frozenset({("certificates.k8s.io", "v1beta1"), ("resource.k8s.io", "v1beta2")})
"""Versions of which this server can serve other resources."""
_NEEDED: Final[tuple[GroupVersion, ...]] = (
    ("", "v1"),
    ("apiextensions.k8s.io", "v1"),
    ("apiregistration.k8s.io", "v1"),
    ("rbac.authorization.k8s.io", "v1"),
)
"""Versions without which a kube-apiserver never becomes ready."""
_SERVER_READS: Final = frozenset(
    {
        ("", "v1", "namespaces"),
        ("", "v1", "secrets"),
        ("", "v1", "serviceaccounts"),
        ("", "v1", "services"),
        ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        ("apiregistration.k8s.io", "v1", "apiservices"),
    }
)

_STABLE: Final = re.compile(r"v\d+\Z", re.ASCII).match
_GROUPS_OF_VERSIONS: Final[Mapping[str, Callable[[str], object]]] = {
    "api/all": lambda _version: True,
    "api/ga": _STABLE,
    "api/beta": re.compile(r"v\d+beta\d+\Z", re.ASCII).match,
    "api/alpha": re.compile(r"v\d+alpha\d+\Z", re.ASCII).match,
}
"""Keys that set groups of versions, in the order in which they are applied, with a function that matches a version."""


class Overrides(Struct, frozen=True):
    """The enabled and disabled APIs. A resource's own setting takes precedence over that of its version."""

    versions: Mapping[GroupVersion, bool] = field(default_factory=dict)
    resources: Mapping[GroupVersionResource, bool] = field(default_factory=dict)

    def is_enabled(self, group: str, version: str, name: str, *, default: bool) -> bool:
        version_setting = self.versions.get((group, version), default)
        return self.resources.get((group, version, name), version_setting)

    def __bool__(self) -> bool:
        return bool(self.versions or self.resources)


NO_OVERRIDES: Final = Overrides()


def read_pairs(text: str) -> tuple[Pair, ...]:
    """Parse `KEY=VALUE,KEY` like kube-apiserver: a value is optional."""
    parts = (part.partition("=") for part in text.split(",") if part)
    return tuple((key.strip(), value.strip()) for key, _, value in parts)


def runtime_config_problem(
    pairs: Iterable[Pair],
    minor: str = minors.NEWEST,
    *,
    has_priority_and_fairness: bool = True,
    gates: frozenset[str] = NO_GATES,
) -> str:
    """Return what is wrong with the flag, in kube-apiserver's words, or what this server cannot do; "" if nothing is.

    `gates` are those that are on.
    """
    settings = _normalized_settings(pairs)
    try:
        if has_priority_and_fairness:
            _check_flow_control(settings)
        _check_keys(settings, minor)
        _check_groups_needed(_overrides(settings, minor))
        _check_served(settings, minor, gates)
    except ValueError as error:
        return str(error)
    return ""


def read_overrides(pairs: Iterable[Pair], minor: str = minors.NEWEST) -> Overrides:
    """Return the overrides of a valid flag; of a repeated key the last value counts."""
    settings = _normalized_settings(pairs)
    return _overrides(settings, minor) if settings else NO_OVERRIDES


def _normalized_settings(pairs: Iterable[Pair]) -> dict[str, str]:
    """Return the settings with one key for the core group, and without the legacy key."""
    settings = dict(pairs)
    for key, value in tuple(settings.items()):
        if key in ("v1", "api/v1") or key.startswith(("v1/", "api/v1/")):
            del settings[key]
            settings["/v1"] = value
    settings.pop("api/legacy", None)
    return settings


def left_out(
    pairs: Iterable[Pair], minor: str = minors.NEWEST, gates: frozenset[str] = NO_GATES
) -> list[str]:
    """Return the resources that kube-apiserver would serve with these settings and this server does not."""
    overrides = read_overrides(pairs, minor)
    return [
        f"{group}/{version}/{name}"
        for group, version, name in not_served(minor, gates)
        if overrides.is_enabled(group, version, name, default=False)
    ]


def _check_flow_control(settings: Mapping[str, str]) -> None:
    for key in ("flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"):
        if settings.get(key) == "false":
            raise ValueError(
                f"--runtime-config={key}=false conflicts with --enable-priority-and-fairness=true"
            )
        if settings.get(key) == "true":
            return


def _check_keys(settings: Mapping[str, str], minor: str) -> None:
    if settings.get("api/all") == "false" and len(settings) == 1:
        raise ValueError("invalid runtime-config with only api/all=false")
    unknown = set()
    for key in sorted(settings.keys() - _GROUPS_OF_VERSIONS.keys()):
        if key.count("/") not in (1, 2):
            raise ValueError(f"runtime-config invalid key {key}")
        group, version = key.split("/")[:2]
        if group not in registered_versions(minor):
            unknown.add(f"{group}/{version}")
    if unknown:
        raise ValueError(f"unknown api groups {','.join(sorted(unknown))}")


def _overrides(settings: Mapping[str, str], minor: str) -> Overrides:
    registered = registered_versions(minor)
    every_version = [(group, version) for group, versions in registered.items() for version in versions]
    versions: dict[GroupVersion, bool] = {}
    resources: dict[GroupVersionResource, bool] = {}
    for key, matches in _GROUPS_OF_VERSIONS.items():
        value = settings.get(key)
        if value not in (None, "true", "false"):
            raise ValueError(f"invalid value {key}={value}")
        if value is not None:
            versions.update({each: value == "true" for each in every_version if matches(each[1])})
    for key in sorted(settings.keys() - _GROUPS_OF_VERSIONS.keys()):
        group, version, *resource = key.split("/")
        if version not in registered.get(group, ()):
            raise ValueError(
                f"group version {'/'.join(filter(None, (group, version)))} that has not been registered"
            )
        enabled = _boolean(key, settings[key])
        if not resource:
            versions[group, version] = enabled
        elif resource[0] != resource[0].lower():
            problem = (
                f"group/version/resource and resource is always lowercase plural, not {quote(resource[0])}"
            )
            raise ValueError(f"invalid key {key}: {problem}")
        else:
            resources[group, version, resource[0]] = enabled
    return Overrides(versions, resources)


def _boolean(key: str, value: str) -> bool:
    try:
        return parse_bool(value) if value else True
    except ValueError as error:
        raise ValueError(f"invalid value of {key}: {value}, err: {error}") from error


def _check_groups_needed(overrides: Overrides) -> None:
    for group, version in _NEEDED:
        if not overrides.versions.get((group, version), True):
            raise ValueError(
                f"--runtime-config cannot turn off {group}/{version}: the server itself needs it"
            )
    for group, version, name in sorted(_SERVER_READS):
        if not overrides.resources.get((group, version, name), True):
            raise ValueError(
                f"--runtime-config cannot turn off {group}/{version}/{name}: the server itself needs it"
            )


def _check_served(settings: Mapping[str, str], minor: str, gates: frozenset[str]) -> None:
    """Refuse a resource that is set by name and cannot be served; one of a group of versions is a warning only."""
    by_name = {key: value for key, value in settings.items() if key not in _GROUPS_OF_VERSIONS}
    named_overrides = _overrides(by_name, minor)
    suffix = "" if minor == minors.NEWEST else f" with --kubernetes-version={minor}"
    for name in not_served(minor, gates):
        group, version, resource = name
        is_whole = (group, version) not in _SERVED_IN_PART
        if named_overrides.resources.get(name) or (
            is_whole and named_overrides.versions.get((group, version))
        ):
            raise ValueError(f"--runtime-config: {group}/{version}/{resource} is not supported{suffix}")
