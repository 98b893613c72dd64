"""Attribute-based access control: the policies of `--authorization-policy-file`, a line of JSON for each."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apiserver.user import AUTHENTICATED, User
from mockube.component_base.configuration_files import ConfigurationError, Record, decode

from .chain import NO_OPINION, Attributes, Decision, DecisionAndReason, Rule, UserRules

_READ: Final = frozenset({"get", "list", "watch"})
_ALLOWED: Final = (Decision.ALLOW, "")
_NO_POLICY_MATCHED: Final = (NO_OPINION[0], "No policy matched.")
_VERSIONED: Final = ("abac.authorization.kubernetes.io/v1beta1", "Policy")


class PolicySpec(Record, frozen=True, kw_only=True):
    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    non_resource_path: str = ""


class Policy(Record, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    spec: PolicySpec = PolicySpec()


class ABAC(Struct, frozen=True):
    """The policies in their order: the first that matches allows."""

    policies: Sequence[PolicySpec]

    def decide(self, attributes: Attributes, /) -> DecisionAndReason:
        return (
            _ALLOWED if any(_matches(policy, attributes) for policy in self.policies) else _NO_POLICY_MATCHED
        )

    def rules(self, user: User, namespace: str, /) -> UserRules:
        resources, paths = list[Rule](), list[Rule]()
        for policy in self.policies:
            if not _is_subject(policy, user) or policy.namespace not in ("*", namespace):
                continue
            verbs = ["get", "list", "watch"] if policy.readonly else ["*"]
            if policy.resource:
                resources.append(
                    {"verbs": verbs, "apiGroups": [policy.api_group], "resources": [policy.resource]}
                )
            if policy.non_resource_path:
                paths.append({"verbs": verbs, "nonResourceURLs": [policy.non_resource_path]})
        return UserRules(resources=resources, paths=paths)


def _matches(policy: PolicySpec, attributes: Attributes) -> bool:
    if not _is_subject(policy, attributes.user):
        return False
    if policy.readonly and attributes.verb not in _READ:
        return False
    if attributes.is_resource:
        return (
            policy.namespace in ("*", attributes.namespace)
            and policy.resource in ("*", attributes.resource)
            and policy.api_group in ("*", attributes.group)
        )
    path = policy.non_resource_path
    return path in ("*", attributes.path) or (
        path.endswith("*") and attributes.path.startswith(path.rstrip("*"))
    )


def _is_subject(policy: PolicySpec, user: User) -> bool:
    """Return whether a policy matches a user: one without user and group matches none."""
    if policy.user not in ("", "*", user.name):
        return False
    if policy.group not in ("", "*") and policy.group not in user.groups:
        return False
    return bool(policy.user or policy.group)


def read_policies(path: Path) -> ABAC:
    """Return the policies of a file, or raise ConfigurationError with the line that is wrong."""
    return ABAC([*_parse_lines(path, path.read_text().splitlines())])


def _parse_lines(path: Path, lines: Iterable[str]) -> Iterable[PolicySpec]:
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            yield _parse_policy(line)
        except (orjson.JSONDecodeError, ConfigurationError) as error:
            problem = f"error reading policy file {path}, line {number}: {line}: {error}"
            raise ConfigurationError(problem) from error


def _parse_policy(line: str) -> PolicySpec:
    tree = orjson.loads(line)
    if not isinstance(tree, dict):
        raise ConfigurationError("couldn't get version/kind; json parse error: it is not an object")
    if (tree.get("apiVersion"), tree.get("kind")) != _VERSIONED:
        return _parse_unversioned(tree)
    spec: PolicySpec = decode(tree, Policy).spec
    return _for_all(spec) if "*" in (spec.user, spec.group) else spec


def _for_all(spec: PolicySpec) -> PolicySpec:
    """`*` matches all authenticated users."""
    fields = {name: getattr(spec, name) for name in spec.__struct_fields__}
    return PolicySpec(**fields | {"user": "", "group": AUTHENTICATED})


def _parse_unversioned(tree: Mapping[str, Any]) -> PolicySpec:
    """Return a policy of the unversioned format, in which an omitted field matches everything."""
    spec: PolicySpec = decode(tree, PolicySpec)
    is_for_all = "*" in (spec.user, spec.group) or not (spec.user or spec.group)
    return PolicySpec(
        user="" if is_for_all else spec.user,
        group=AUTHENTICATED if is_for_all else spec.group,
        readonly=spec.readonly,
        api_group="*",
        resource=spec.resource or "*",
        namespace=spec.namespace or "*",
        non_resource_path="" if spec.namespace or spec.resource else "*",
    )
