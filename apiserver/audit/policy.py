"""The audit policy, a document of upstream's kind `audit.k8s.io/v1` Policy: which requests are logged at which level.

The first rule that matches decides. Without a policy, all requests are logged at level Metadata.
"""

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

from msgspec import Struct, ValidationError, convert, field

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.user import User

STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")


class BadPolicy(ValueError):
    """The file is not an audit policy."""


class Level(IntEnum):
    """How much of a request is logged."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


_LEVELS = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}


class AuditDecision(Struct, frozen=True, kw_only=True):
    level: Level
    omitted: frozenset[str] = frozenset()
    """Stages that are not logged."""
    managed_fields: bool = True


class _Rule(Struct, frozen=True, kw_only=True):
    decision: AuditDecision
    tree: ReadOnlyTree

    def matches(self, user: User, info: RequestInfo) -> bool:
        tree = self.tree
        return (
            _is_empty_or_contains(tree.get("users"), user.name)
            and _is_empty_or_intersects(tree.get("userGroups"), user.groups)
            and _is_empty_or_contains(tree.get("verbs"), info.verb)
            and self._matches_request(info)
        )

    def _matches_request(self, info: RequestInfo) -> bool:
        resources, urls = self.tree.get("resources"), self.tree.get("nonResourceURLs")
        if not resources and not urls and not self.tree.get("namespaces"):
            return True
        if not info.is_resource:
            return any(_matches_url(pattern, info.path) for pattern in urls or ())
        if not _is_empty_or_contains(self.tree.get("namespaces"), info.namespace):
            return False
        if not resources:
            return not urls
        return any(_matches_resource(entry, info) for entry in resources)


class AuditPolicy:
    """Rules in their order."""

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._rules = rules

    def decide(self, user: User, info: RequestInfo) -> AuditDecision:
        return next(
            (rule.decision for rule in self._rules if rule.matches(user, info)),
            AuditDecision(level=Level.NONE),
        )


DEFAULT_POLICY = AuditPolicy(
    [_Rule(decision=AuditDecision(level=Level.METADATA, omitted=frozenset({"RequestReceived"})), tree={})]
)


_POLICY = ("audit.k8s.io/v1", "Policy")


def read(path: Path) -> AuditPolicy:
    try:
        tree = load(path.read_bytes()).tree
    except YamlError as error:
        raise BadPolicy(f"{path}: {error}") from error
    if (
        not isinstance(tree, dict)
        or (tree.get("apiVersion"), tree.get("kind")) != _POLICY
        or not isinstance(tree.get("rules"), list)
    ):
        raise BadPolicy(f"{path}: an audit.k8s.io/v1 Policy with rules is expected")
    try:
        convert(tree, _PolicyFields)
    except ValidationError as error:
        raise BadPolicy(f"{path}: {error}") from error
    return AuditPolicy([_rule(path, tree, rule) for rule in tree["rules"]])


class _ResourcesFields(Struct, rename="camel"):
    group: str | None = None
    resources: list[str] | None = None
    resource_names: list[str] | None = None


class _RuleFields(Struct, rename="camel"):
    level: str | None = None
    users: list[str] | None = None
    user_groups: list[str] | None = None
    verbs: list[str] | None = None
    resources: list[_ResourcesFields] | None = None
    namespaces: list[str] | None = None
    non_resource_urls: list[str] | None = field(default=None, name="nonResourceURLs")
    omit_stages: list[str] | None = None
    omit_managed_fields: bool | None = None


class _PolicyFields(Struct, rename="camel"):
    """The types of a policy's fields; its values are read from its tree."""

    rules: list[_RuleFields]
    omit_stages: list[str] | None = None
    omit_managed_fields: bool | None = None


def _rule(path: Path, policy: ReadOnlyTree, tree: ReadOnlyTree) -> _Rule:
    level = _LEVELS.get(tree.get("level") or "")
    if level is None:
        raise BadPolicy(f"{path}: a rule's level must be one of {', '.join(_LEVELS)}")
    omitted = frozenset([*(policy.get("omitStages") or ()), *(tree.get("omitStages") or ())])
    if omitted - set(STAGES):
        raise BadPolicy(f"{path}: omitStages may name {', '.join(STAGES)}")
    omits = tree.get("omitManagedFields", policy.get("omitManagedFields", False))
    return _Rule(decision=AuditDecision(level=level, omitted=omitted, managed_fields=not omits), tree=tree)


def _is_empty_or_contains(items: Sequence[str] | None, value: str) -> bool:
    return not items or value in items


def _is_empty_or_intersects(items: Sequence[str] | None, values: Sequence[str]) -> bool:
    return not items or not set(items).isdisjoint(values)


def _matches_url(pattern: str, path: str) -> bool:
    return path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def _matches_resource(entry: ReadOnlyTree, info: RequestInfo) -> bool:
    if (entry.get("group") or "") != info.group:
        return False
    named = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    patterns = entry.get("resources")
    covers = not patterns or any(_matches_pattern(pattern, named, info) for pattern in patterns)
    return covers and _is_empty_or_contains(entry.get("resourceNames"), info.name)


def _matches_pattern(pattern: str, named: str, info: RequestInfo) -> bool:
    if pattern in ("*", named):
        return True
    resource, _, subresource = pattern.partition("/")
    if subresource == "*":
        return bool(info.subresource) and resource == info.resource
    return resource == "*" and subresource == info.subresource
