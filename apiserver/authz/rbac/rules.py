"""The rules of one role, indexed by their resources. The cost of a lookup does not grow with the number of rules."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

ALL: Final = "*"

ANY_NAME: Final[frozenset[str]] = frozenset()
"""The names of a rule that is not limited to names."""


class _Rule:
    __slots__ = ("groups", "names", "urls", "verbs")

    def __init__(self, tree: Mapping[str, Any]) -> None:
        self.verbs = _set(tree, "verbs")
        self.groups = _set(tree, "apiGroups")
        self.names = _set(tree, "resourceNames")
        self.urls = _set(tree, "nonResourceURLs")

    def has_verb(self, verb: str) -> bool:
        return verb in self.verbs or ALL in self.verbs

    def has_group(self, group: str) -> bool:
        return group in self.groups or ALL in self.groups


def _set(tree: Mapping[str, Any], name: str) -> frozenset[str]:
    return frozenset(tree.get(name) or ())


class RuleSet:
    """The rules of a role. `trees` are the rules as in the object."""

    __slots__ = ("_index", "trees")

    def __init__(self, trees: Sequence[Mapping[str, Any]]) -> None:
        self.trees = trees
        self._index: tuple[Mapping[str, Sequence[_Rule]], Sequence[_Rule]] | None = None
        """The rules by resource, and those for URLs; built at the first use, because most roles are never used."""

    def _ensure_index(self) -> tuple[Mapping[str, Sequence[_Rule]], Sequence[_Rule]]:
        if self._index is None:
            self._index = _index(self.trees)
        return self._index

    def names(self, verb: str, group: str, resource: str, subresource: str) -> frozenset[str] | None:
        """Return the names of the objects that the verb is allowed for: `ANY_NAME` if all, None if none are."""
        names: set[str] = set()
        by_resource, _ = self._ensure_index()
        for pattern in _patterns(resource, subresource):
            for rule in by_resource.get(pattern, ()):
                if rule.has_verb(verb) and rule.has_group(group):
                    if not rule.names:
                        return ANY_NAME
                    names |= rule.names
        return frozenset(names) if names else None

    def allows_path(self, verb: str, path: str) -> bool:
        _, url_rules = self._ensure_index()
        return any(rule.has_verb(verb) and covers_path(rule.urls, path) for rule in url_rules)


def _index(trees: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Sequence[_Rule]], Sequence[_Rule]]:
    by_resource: dict[str, list[_Rule]] = {}
    url_rules = []
    for tree in trees:
        rule = _Rule(tree)
        for resource in _set(tree, "resources"):
            by_resource.setdefault(resource, []).append(rule)
        if rule.urls:
            url_rules.append(rule)
    return by_resource, url_rules


def _patterns(resource: str, subresource: str) -> Iterator[str]:
    """Yield the names by which a rule may refer to a resource."""
    yield f"{resource}/{subresource}" if subresource else resource
    yield ALL
    if subresource:
        yield f"*/{subresource}"


def covers_path(urls: frozenset[str], path: str) -> bool:
    return path in urls or any(url.endswith(ALL) and path.startswith(url.rstrip(ALL)) for url in urls)
