"""The rules of the smallest roles that allow some rights, and the rights of roles that were never used."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.rbac.escalation import PolicyRule
from mockube.apiserver.authz.rbac.rules import ALL, RuleSet

from .access import Right
from .matching import VERBS

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")
ALL_NAMES: Final = 1 << 30
"""As many names as a verb applies to: none of its rules is for all objects."""
_ORDER: Final = {verb: index for index, verb in enumerate(VERBS)}


class _Objects(NamedTuple):
    """The objects that some verbs apply to: those of resources, or some of them by name."""

    group: str
    names: tuple[str, ...]


def allows(rules: RuleSet, right: Right) -> bool:
    if right.path:
        return rules.allows_path(right.verb, right.path)
    resource, _, subresource = right.resource.partition("/")
    names = rules.names(right.verb, right.group, resource, subresource)
    return names is not None and (not names or right.name in names)


def rules_of(rights: Collection[Right], max_names: int) -> Sequence[Tree]:
    """Return the rules that allow these rights. A verb on more objects than `max_names` is allowed on all objects."""
    verbs: dict[tuple[_Objects, str], list[str]] = defaultdict(list)
    for (verb, group, resource), names in _grouped(
        ((right.verb, right.group, right.resource), right.name) for right in rights if not right.path
    ).items():
        is_any = "" in names or len(names) > max_names
        verbs[_Objects(group, () if is_any else tuple(sorted(names))), resource].append(verb)
    joined = _grouped(
        ((objects, _sorted_verbs(of_objects)), resource)
        for (objects, resource), of_objects in sorted(verbs.items())
    )
    return [
        *(_resource_rule(objects, resources, of_rule) for (objects, of_rule), resources in joined.items()),
        *_path_rules(rights),
    ]


def _resource_rule(objects: _Objects, resources: Iterable[str], verbs: Sequence[str]) -> Tree:
    rule: Tree = {"apiGroups": [objects.group], "resources": sorted(resources), "verbs": [*verbs]}
    return {**rule, "resourceNames": [*objects.names]} if objects.names else rule


def _path_rules(rights: Iterable[Right]) -> Iterator[Tree]:
    verbs = _grouped((right.path, right.verb) for right in rights if right.path)
    paths = _grouped((_sorted_verbs(of_path), path) for path, of_path in verbs.items())
    for of_rule, joined in paths.items():
        yield {"nonResourceURLs": sorted(joined), "verbs": [*of_rule]}


def _grouped(pairs: Iterable[tuple[_K, _V]]) -> Mapping[_K, set[_V]]:
    grouped: dict[_K, set[_V]] = defaultdict(set)
    for key, value in pairs:
        grouped[key].add(value)
    return grouped


def _sorted_verbs(verbs: Iterable[str]) -> tuple[str, ...]:
    """Return verbs in the order in which roles usually have them."""
    return tuple(sorted(verbs, key=lambda verb: (_ORDER.get(verb, len(_ORDER)), verb)))


def single_rights(rule: PolicyRule) -> Iterator[Right]:
    """Yield the rights of a rule one by one, with its wildcards."""
    for verb in rule.get("verbs") or ():
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or ("",):
                    yield Right(verb, group, resource, name)
        for path in rule.get("nonResourceURLs") or ():
            yield Right(verb, path=path)


class UsedRights:
    """The rights that were used in the scope of one role, to look up which rights of the role are among them."""

    def __init__(self, rights: Iterable[Right]) -> None:
        self._names = _grouped(
            ((right.verb, right.group, right.resource, right.path), right.name) for right in rights
        )

    def cost(self, granted: Right) -> int:
        """Return with how many used rights a granted one is compared."""
        return 1 + len(self._names) if has_wildcard(granted) else 1

    def covered_by(self, granted: Right) -> Collection[Right]:
        """Return the used rights that a granted one allows."""
        if not has_wildcard(granted):
            names = self._names.get((granted.verb, granted.group, granted.resource, granted.path), set())
            return [granted._replace(name=name) for name in names if granted.name in ("", name)]
        rules = RuleSet([_rule(granted._replace(name=""))])
        return [
            right._replace(name=name)
            for (verb, group, resource, path), names in self._names.items()
            if allows(rules, right := Right(verb, group, resource, path=path))
            for name in names
            if granted.name in ("", name)
        ]


def has_wildcard(right: Right) -> bool:
    """Return whether a granted right is one to more than what it names."""
    return ALL in (right.verb, right.group) or right.resource.startswith(ALL) or right.path.endswith(ALL)


def _rule(right: Right) -> PolicyRule:
    if right.path:
        return {"verbs": [right.verb], "nonResourceURLs": [right.path]}
    rule: Tree = {"verbs": [right.verb], "apiGroups": [right.group], "resources": [right.resource]}
    return {**rule, "resourceNames": [right.name]} if right.name else rule
