"""Certificate policies: RFC 5280, section 6.1, with the graph of policies of RFC 9618 instead of the tree."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

ANY_POLICY: Final = bytes((0x55, 0x1D, 0x20, 0))
"""The encoded identifier of the policy that stands for all policies."""


class PolicyRules(Struct):
    """What one certificate says of policies, by their encoded identifiers."""

    policies: tuple[bytes, ...] = ()
    mappings: tuple[tuple[bytes, bytes], ...] = ()
    """Pairs of a policy of the issuer and the equivalent one of the subject."""
    require_explicit: int | None = None
    inhibit_mapping: int | None = None
    inhibit_any: int | None = None


class ChainPolicies(Struct, frozen=True):
    rules: PolicyRules
    is_self_issued: bool


class _Node(Struct, eq=False):
    """A valid policy at one depth of the chain."""

    policy: bytes
    parents: "list[_Node]" = field(default_factory=list)
    expected: tuple[bytes, ...] = ()
    """The policies of the next certificate that continue it."""
    children: int = 0
    """The number of policies at the next depth that continue it."""


_Level = dict[bytes, _Node]


class _Graph:
    """The valid policies, from the root's certificate to the leaf's."""

    def __init__(self) -> None:
        self.levels: list[_Level] = [{}]
        self._add(_Node(ANY_POLICY))

    def _add(self, node: _Node) -> None:
        node.expected = node.expected or (node.policy,)
        for parent in node.parents:
            parent.children += 1
        self.levels[-1][node.policy] = node

    def descend(self, policies: Sequence[bytes], *, accepts_any: bool) -> None:
        """Add the policies of the next certificate."""
        above = self.levels[-1]
        self.levels.append({})
        expected: dict[bytes, list[_Node]] = {}
        for node in above.values():
            for policy in node.expected:
                expected.setdefault(policy, []).append(node)
        any_parent = above.get(ANY_POLICY)
        for policy in policies:
            parents = expected.get(policy) or ([any_parent] if any_parent is not None else [])
            if policy != ANY_POLICY and parents:
                self._add(_Node(policy, parents))
        if ANY_POLICY in policies and accepts_any:
            for policy, parents in expected.items():
                if policy not in self.levels[-1]:
                    self._add(_Node(policy, parents))
        self.prune()

    def prune(self) -> None:
        """Delete the policies that no policy of the next certificate continues."""
        for level in self.levels[-2:0:-1]:
            for node in [node for node in level.values() if not node.children]:
                self._delete(level, node)

    @staticmethod
    def _delete(level: _Level, node: _Node) -> None:
        del level[node.policy]
        for parent in node.parents:
            parent.children -= 1

    def map(self, mappings: Sequence[tuple[bytes, bytes]], *, is_allowed: bool) -> None:
        """Replace what continues the policies of an issuer; delete these policies if mapping is not allowed."""
        leaves, subjects = self.levels[-1], dict[bytes, list[bytes]]()
        for issuer, subject in mappings:
            if is_allowed:
                subjects.setdefault(issuer, []).append(subject)
            elif issuer in leaves:
                self._delete(leaves, leaves[issuer])
        self.prune()
        for issuer, mapped in subjects.items():
            if issuer in leaves:
                leaves[issuer].expected = tuple(dict.fromkeys(mapped))
            elif ANY_POLICY in leaves:
                self._add(_Node(issuer, [leaves[ANY_POLICY]], tuple(dict.fromkeys(mapped))))

    def has_valid_policy(self) -> bool:
        if ANY_POLICY in self.levels[-1]:
            return True
        return any(
            node.policy != ANY_POLICY and len(node.parents) == 1 and node.parents[0].policy == ANY_POLICY
            for level in self.levels
            for node in level.values()
        )


def policies_are_valid(chain: Sequence[ChainPolicies]) -> bool:
    """Return whether a chain, from the leaf to the root, has a valid policy or needs none."""
    length = len(chain) - 1
    if not length:
        return True
    limits = {"explicit": length + 1, "mapping": length + 1, "any": length + 1}
    graph: _Graph | None = _Graph()
    for index in range(length - 1, -1, -1):
        rules, is_self_issued = chain[index].rules, chain[index].is_self_issued
        if not rules.policies:
            graph = None
        if graph is None and not limits["explicit"]:
            return False
        if graph is not None:
            graph.descend(rules.policies, accepts_any=limits["any"] > 0 or (index > 0 and is_self_issued))
        if index and graph is not None and rules.mappings:
            is_allowed = limits["mapping"] > 0
            if is_allowed and any(ANY_POLICY in pair for pair in rules.mappings):
                return False
            graph.map(rules.mappings, is_allowed=is_allowed)
        if index:
            limits = _next_limits(limits, rules, is_self_issued=is_self_issued)
    explicit = max(limits["explicit"] - 1, 0)
    if chain[0].rules.require_explicit == 0:
        explicit = 0
    return explicit > 0 or (graph is not None and graph.has_valid_policy())


def _next_limits(limits: Mapping[str, int], rules: PolicyRules, *, is_self_issued: bool) -> dict[str, int]:
    """Return the numbers of certificates for which each rule does not hold yet."""
    own = {"explicit": rules.require_explicit, "mapping": rules.inhibit_mapping, "any": rules.inhibit_any}
    following = dict[str, int]()
    for name, limit in limits.items():
        remaining, stated = limit if is_self_issued else max(limit - 1, 0), own[name]
        following[name] = remaining if stated is None or stated < 0 else min(remaining, stated)
    return following
