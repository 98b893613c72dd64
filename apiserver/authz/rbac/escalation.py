"""Prevent privilege escalation: find the rights in new rules that the user who writes them does not have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery.gotext import quote, quote_list
from mockube.apiserver.authz.chain import aggregate
from mockube.apiserver.user import User

from .policy import RBACPolicy
from .rules import ANY_NAME, RuleSet

PolicyRule = Mapping[str, Any]
"""A rule of a role."""

FULL_AUTHORITY: Final[Sequence[PolicyRule]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)

MAX_COMPARED: Final = 20_000
"""The number of single rights of a role that are compared with those of the user who writes it."""


class TooManyRules(Exception):
    """A role has more rights than are compared."""


def escalation(policy: RBACPolicy, user: User, namespace: str, rules: Sequence[PolicyRule]) -> str:
    """Return the error if a user grants rules that it does not have itself; "" if it has them."""
    granted = list(policy.granted_roles(user, namespace))
    own = [tree for role in granted if role.rules is not None for tree in role.rules.trees]
    try:
        missing = missing_rules(own, rules)
    except TooManyRules as error:
        return str(error)
    if not missing:
        return ""
    groups = quote_list(user.groups)
    lines = sorted({describe(rule) for rule in compact_rules(missing)})
    text = (
        f"user {quote(user.name)} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n"
        + "\n".join(lines)
    )
    problem = aggregate([role.error for role in granted if role.error])
    return f"{text}; resolution errors: [{problem}]" if problem else text


def missing_rules(own: Sequence[PolicyRule], rules: Iterable[PolicyRule]) -> Sequence[PolicyRule]:
    """Return the single rights of `rules` that no rule of `own` covers, each as a rule, comparing at most `MAX_COMPARED`."""
    rights = RuleSet(own)
    missing = []
    for count, single in enumerate(part for rule in rules for part in _single_rights(rule)):
        if count >= MAX_COMPARED:
            raise TooManyRules(f"the role has more than {MAX_COMPARED} single rights")
        if not _covers(rights, single):
            missing.append(single)
    return missing


def _single_rights(rule: PolicyRule) -> Iterator[PolicyRule]:
    """Yield the single rights of a rule: one verb on one resource of one group, or of one name, or on one URL."""
    names = [[name] for name in rule.get("resourceNames") or ()]
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                single = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
                if names:
                    yield from ({**single, "resourceNames": name} for name in names)
                else:
                    yield single
    for url in rule.get("nonResourceURLs") or ():
        for verb in rule.get("verbs") or ():
            yield {"verbs": [verb], "nonResourceURLs": [url]}


def _covers(rights: RuleSet, single: PolicyRule) -> bool:
    (verb,) = single["verbs"]
    if "nonResourceURLs" in single:
        return rights.allows_path(verb, single["nonResourceURLs"][0])
    (group,), (path,) = single["apiGroups"], single["resources"]
    resource, _, subresource = path.partition("/")
    allowed = rights.names(verb, group, resource, subresource)
    if allowed is None:
        return False
    return allowed is ANY_NAME or allowed.issuperset(single.get("resourceNames", (None,)))


def compact_rules(rules: Iterable[PolicyRule]) -> Sequence[PolicyRule]:
    """Join single rights to the same object that differ only in the verb."""
    joined: dict[tuple[str, ...], list[str]] = {}
    joined_rules: list[PolicyRule] = []
    for rule in rules:
        if "nonResourceURLs" in rule:
            joined_rules.append(rule)
            continue
        key = (rule["apiGroups"][0], rule["resources"][0], *rule.get("resourceNames", ()))
        verbs = joined.get(key)
        if verbs is None:
            joined[key] = verbs = []
            joined_rules.append({**rule, "verbs": verbs})
        verbs += rule["verbs"]
    return joined_rules


_GO_NAMES: Final = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


def describe(rule: PolicyRule) -> str:
    """Format a rule as upstream's messages do."""
    parts = [f"{title}:{quote_list(rule[name])}" for name, title in _GO_NAMES.items() if rule.get(name)]
    return f"{{{', '.join(parts)}}}"
