"""`--admission-control-config-file`: an AdmissionConfiguration, with the configuration of each plugin."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

from mockube.apimachinery.durations import format_duration
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.admission.configurations import (
    ALL_EVENTS,
    EVENT_CACHE_SIZE,
    EVENT_LIMIT_TYPES,
    Configurations,
    EventLimit,
    ImagePolicySettings,
    LimitedResource,
    PodSecurityConfiguration,
    PodSecurityExemptions,
    TolerationConfiguration,
)
from mockube.apiserver.admission.podsecurity.policy import NO_POLICY, PREFIX, read_policy
from mockube.apiserver.kubeconfig import BadKubeconfig, read_endpoint

from . import files
from .files import FileProblem, Tree

_FILES: Final = frozenset(
    (version, "AdmissionConfiguration")
    for version in ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")
)
_MODES: Final = frozenset(f"{mode}{end}" for mode in ("enforce", "audit", "warn") for end in ("", "-version"))
_LEGACY: Final = "podNodeSelectorPluginConfig"


def admission_configuration(text: str) -> Configurations:
    """Read the file that a flag names."""
    return files.from_flag(read, text)


def read(path: Path) -> Configurations:
    tree = files.read_tree(path)
    if "kind" not in tree and _LEGACY in tree:
        return Configurations(**_node_selectors(tree))
    if (tree.get("apiVersion"), tree.get("kind")) not in _FILES:
        group_version_kind = f"{tree.get('apiVersion')}, Kind={tree.get('kind')}"
        raise FileProblem(
            f"it is not an AdmissionConfiguration of apiserver.config.k8s.io/v1, but {group_version_kind}"
        )
    files.check_fields(tree, {"apiVersion", "kind", "plugins"}, "the file")
    settings: dict[str, Any] = {}
    for entry in files.list_of(tree, "plugins"):
        name = str(entry.get("name"))
        if name in _REFUSED:
            raise FileProblem(f"the configuration of {name} is not supported")
        if name in _READERS and (configuration := _configuration(path, entry)) is not None:
            try:
                settings |= _READERS[name](configuration)
            except FileProblem as problem:
                raise FileProblem(f"{name}: {problem}") from problem
    return Configurations(**settings)


def _configuration(path: Path, entry: Tree) -> Tree | None:
    """Return the configuration in the entry, or in the file that it names, relative to `path`."""
    configuration = entry.get("configuration")
    if isinstance(configuration, dict):
        return configuration
    return files.read_tree(path.parent / entry["path"]) if entry.get("path") else None


def _check_kind(tree: Tree, group: str, kind: str, allowed_fields: Collection[str]) -> None:
    if tree.get("kind") != kind or str(tree.get("apiVersion")).rpartition("/")[0] != group:
        group_version_kind = f"{tree.get('apiVersion')}, Kind={tree.get('kind')}"
        raise FileProblem(f"expected a {kind} of {group}, not {group_version_kind}")
    files.check_fields(tree, {"apiVersion", "kind", *allowed_fields}, f"the {kind}")


def _texts(tree: Tree, name: str) -> tuple[str, ...]:
    values = tree.get(name) or []
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise FileProblem(f"{name} is not a list of strings")
    return tuple(values)


def _node_selectors(tree: Tree) -> dict[str, Any]:
    selectors = tree.get(_LEGACY) or {}
    if not isinstance(selectors, dict) or not all(
        isinstance(selector, str) for selector in selectors.values()
    ):
        raise FileProblem(f"{_LEGACY} is not a map of selectors")
    return {"node_selectors": selectors}


_SECOND: Final = 10**9
_MILLISECOND: Final = 10**6


def _image_policy(tree: Tree) -> dict[str, Any]:
    policy = tree.get("imagePolicy") or {}
    if not isinstance(policy, dict):
        raise FileProblem("imagePolicy is not an object")
    retry = _nanoseconds(policy, "retryBackoff", _MILLISECOND, (1, 300 * _SECOND), _SECOND // 2)
    allow = _nanoseconds(policy, "allowTTL", _SECOND, (_SECOND, 1800 * _SECOND), 300 * _SECOND)
    deny = _nanoseconds(policy, "denyTTL", _SECOND, (_SECOND, 1800 * _SECOND), 30 * _SECOND)
    try:
        endpoint = read_endpoint(Path(str(policy.get("kubeConfigFile") or "")))
    except BadKubeconfig as error:
        raise FileProblem(str(error)) from error
    settings = ImagePolicySettings(
        endpoint=endpoint,
        allow_seconds=allow / _SECOND,
        deny_seconds=deny / _SECOND,
        retry_seconds=retry / _SECOND,
        default_allow=policy.get("defaultAllow") is True,
    )
    return {"image_policy": settings}


def _nanoseconds(tree: Tree, name: str, unit: int, bounds: tuple[int, int], default: int) -> int:
    """Return a duration in nanoseconds; 0 is the default, and -1 is zero."""
    value = tree.get(name) or 0
    if not isinstance(value, int):
        raise FileProblem(f"json: cannot unmarshal into Go struct field .imagePolicy.{name} of type int64")
    if value in (0, -1):
        return 0 if value else default
    if not bounds[0] <= value * unit <= bounds[1]:
        minimum, maximum, duration = map(format_duration, (*bounds, value * unit))
        raise FileProblem(f"valid value is between {minimum} and {maximum}, got {duration}")
    return value * unit


def _event_limits(tree: Tree) -> dict[str, Any]:
    _check_kind(tree, "eventratelimit.admission.k8s.io", "Configuration", {"limits"})
    limits = [_limit(entry, index) for index, entry in enumerate(files.list_of(tree, "limits"))]
    if not limits:
        raise FileProblem("limits: Invalid value: null: must not be empty")
    return {"event_limits": limits}


def _limit(tree: Tree, index: int) -> EventLimit:
    location = f"limits[{index}]"
    files.check_fields(tree, {"type", "qps", "burst", "cacheSize"}, location)
    kind, size = str(tree.get("type")), tree.get("cacheSize", 0)
    if kind not in EVENT_LIMIT_TYPES:
        supported_types = ", ".join(map(quote, EVENT_LIMIT_TYPES))
        raise FileProblem(
            f"{location}.type: Unsupported value: {quote(kind)}: supported values: {supported_types}"
        )
    for name in ("burst", "qps"):
        if not isinstance(tree.get(name), int) or tree[name] <= 0:
            raise FileProblem(f"{location}.{name}: Invalid value: {tree.get(name, 0)}: must be positive")
    if kind != ALL_EVENTS and (not isinstance(size, int) or size < 0):
        raise FileProblem(f"{location}.cacheSize: Invalid value: {size}: must not be negative")
    return EventLimit(type=kind, qps=tree["qps"], burst=tree["burst"], cache_size=size or EVENT_CACHE_SIZE)


def _tolerations(tree: Tree) -> dict[str, Any]:
    group = "podtolerationrestriction.admission.k8s.io"
    _check_kind(tree, group, "Configuration", {"default", "whitelist"})
    default, whitelist = files.list_of(tree, "default"), files.list_of(tree, "whitelist")
    return {"tolerations": TolerationConfiguration(default=default, whitelist=whitelist)}


def _pod_security(tree: Tree) -> dict[str, Any]:
    group, kind = "pod-security.admission.config.k8s.io", "PodSecurityConfiguration"
    _check_kind(tree, group, kind, {"defaults", "exemptions"})
    defaults, exemptions = tree.get("defaults") or {}, tree.get("exemptions") or {}
    files.check_fields(defaults, _MODES, "defaults")
    files.check_fields(exemptions, {"usernames", "namespaces", "runtimeClasses"}, "exemptions")
    policy, wrong = read_policy(
        {f"{PREFIX}{name}": str(value) for name, value in defaults.items()}, NO_POLICY
    )
    if wrong:
        raise FileProblem(f"defaults: {wrong[0]}")
    exempt = PodSecurityExemptions(
        usernames=_texts(exemptions, "usernames"),
        namespaces=_texts(exemptions, "namespaces"),
        runtime_classes=_texts(exemptions, "runtimeClasses"),
    )
    return {"pod_security": PodSecurityConfiguration(defaults=policy, exemptions=exempt)}


_QUOTA_KINDS: Final = frozenset(
    {
        ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
        ("resourcequota.admission.k8s.io/v1beta1", "Configuration"),
        ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"),
    }
)
_LIMITED: Final = {"apiGroup", "resource", "matchContains", "matchScopes"}


def _limited_resources(tree: Tree) -> dict[str, Any]:
    if (tree.get("apiVersion"), tree.get("kind")) not in _QUOTA_KINDS:
        group_version_kind = f"{tree.get('apiVersion')}, Kind={tree.get('kind')}"
        raise FileProblem(
            f"expected a ResourceQuotaConfiguration of apiserver.config.k8s.io, not {group_version_kind}"
        )
    files.check_fields(tree, {"apiVersion", "kind", "limitedResources"}, "the configuration")
    entries = files.list_of(tree, "limitedResources")
    return {"limited_resources": [_limited_resource(entry, index) for index, entry in enumerate(entries)]}


def _limited_resource(tree: Tree, index: int) -> LimitedResource:
    location = f"limitedResources[{index}]"
    files.check_fields(tree, _LIMITED, location)
    if not tree.get("resource"):
        raise FileProblem(f"{location}.resource: Required value")
    scopes = files.list_of(tree, "matchScopes")
    for number, scope in enumerate(scopes):
        files.check_fields(scope, {"scopeName", "operator", "values"}, f"{location}.matchScopes[{number}]")
        _texts(scope, "values")
    return LimitedResource(
        resource=GroupResource(str(tree.get("apiGroup") or ""), str(tree["resource"])),
        contains=_texts(tree, "matchContains"),
        scopes=[{"scopeName": "", "operator": "", **scope} for scope in scopes],
    )


_READERS: Final[Mapping[str, Callable[[Tree], dict[str, Any]]]] = {
    "EventRateLimit": _event_limits,
    "ImagePolicyWebhook": _image_policy,
    "PodNodeSelector": _node_selectors,
    "PodSecurity": _pod_security,
    "PodTolerationRestriction": _tolerations,
    "ResourceQuota": _limited_resources,
}
_REFUSED: Final = frozenset({"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"})
