"""Find the feasible nodes of a pod and the best of them, or the reasons why there is none. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.tree import MALFORMED_OBJECT_ERRORS

from .cluster import ClusterSnapshot
from .filters.filter import Check, Rejection, Restriction
from .nodeinfo import NodeInfo
from .plugin_failure import PluginFailure
from .podinfo import PodInfo
from .pods import nominated_node
from .profile import Profile
from .profiles import DEFAULT_PROFILE
from .sampling import NodeSample

EXTENDER: Final = "Extender"
"""The name of all extenders among the plugins that reject a pod. Extenders have no hints: any event may help such a pod."""
MALFORMED: Final = Rejection(("node(s) could not be checked for the pod",), is_unresolvable=True)

NO_SCORES: Final[Mapping[str, int]] = {}


class FeasibleNodes(Struct, frozen=True):
    """The feasible nodes of a pod, and why others are not."""

    feasible: Sequence[NodeInfo]
    rejections: Mapping[str, Rejection] = field(default_factory=dict)
    """The rejections by node name; not complete if a node is feasible of those that the pod names."""
    prefilter_rejection: Rejection | None = None
    """The rejection of all nodes, whatever their state."""

    @classmethod
    def of_error(cls, error: PluginFailure) -> "FeasibleNodes":
        """Return the result of a pod whose attempt fails."""
        return cls((), prefilter_rejection=Rejection((str(error),), is_error=True))

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected the pod; empty if some change of anything may help."""
        plugins = frozenset(rejection.plugin for rejection in self.rejections.values())
        return frozenset() if "" in plugins else plugins

    @property
    def is_error(self) -> bool:
        return self.prefilter_rejection is not None and self.prefilter_rejection.is_error


NamedCheck = tuple[str, Check]
"""A check, after the name of its plugin."""


class _Checks(Struct, frozen=True):
    """The checks of all filters for a pod with the names of their plugins, and the restrictions to some nodes."""

    checks: Sequence[NamedCheck]
    restrictions: Mapping[str, Restriction] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The names of the nodes to which the restrictions restrict the pod; empty without restrictions."""
        names = [restriction.names for restriction in self.restrictions.values()]
        return frozenset.intersection(*names) if names else frozenset()

    def of_restrictions(self, node: NodeInfo) -> Rejection | None:
        if all(node.name in restriction.names for restriction in self.restrictions.values()):
            return None
        plugins = sorted(self.restrictions)
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
        return Rejection((reason,), is_unresolvable=True, plugin=plugins[0])


def find_feasible(
    pod: PodInfo,
    snapshot: ClusterSnapshot,
    profile: Profile = DEFAULT_PROFILE,
    sample: NodeSample | None = None,
) -> FeasibleNodes:
    """Filter all nodes by all filter plugins, or those of a sample until enough are feasible.

    The node for which the pod is nominated is the only one if it is feasible.
    """
    return _search(pod, snapshot, profile, lambda search: search.among_few() or search.among_all(sample))


def find_all_feasible(
    pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile, sample: NodeSample | None
) -> FeasibleNodes:
    """Filter all nodes, or those of a sample; the result says of each why it is not feasible."""
    return _search(pod, snapshot, profile, lambda search: search.among_all(sample))


def find_nominated(pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile) -> FeasibleNodes:
    """Return the node for which the pod is nominated, if it is feasible."""
    return _search(pod, snapshot, profile, lambda search: search.on_nominated() or FeasibleNodes(()))


def _search(
    pod: PodInfo,
    snapshot: ClusterSnapshot,
    profile: Profile,
    find: Callable[["_Search"], FeasibleNodes],
) -> FeasibleNodes:
    try:
        checks = _checks_of(pod, snapshot, profile)
        if isinstance(checks, Rejection):
            return FeasibleNodes((), {node.name: checks for node in snapshot.nodes}, checks)
        return find(_Search(pod, snapshot, profile, checks))
    except PluginFailure as failure:
        return FeasibleNodes.of_error(failure)


class _Search:
    """The search for the feasible nodes of a pod."""

    def __init__(self, pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile, checks: _Checks) -> None:
        self._snapshot, self._checks = snapshot, checks
        self._rejection_of = partial(_rejection_of, checks, pod, snapshot=snapshot, profile=profile)
        self._nominated = nominated_node(pod.view.object)

    def on_nominated(self) -> FeasibleNodes | None:
        """Return the node for which the pod is nominated, if it is feasible."""
        for node in self._snapshot.nodes if self._nominated else ():
            if node.name == self._nominated and self._rejection_of(node) is None:
                return FeasibleNodes([node])
        return None

    def among_few(self) -> FeasibleNodes | None:
        """Return the feasible nodes of those for which the pod is nominated, or that it names; None without such."""
        nominated = self.on_nominated()
        if nominated is not None:
            return nominated
        # Of few named nodes, the others need no check, and their rejections matter only if none of the few is feasible.
        names = self._checks.names
        named = [node for node in self._snapshot.nodes if node.name in names] if names else ()
        feasible = [node for node in named if self._rejection_of(node) is None]
        return FeasibleNodes(feasible) if feasible and self._snapshot.devices is None else None

    def among_all(self, sample: NodeSample | None) -> FeasibleNodes:
        nodes = self._snapshot.nodes
        feasible: list[NodeInfo] = []
        rejections: dict[str, Rejection] = {}
        for node in nodes if sample is None else sample.walk(nodes):
            rejection = self._checks.of_restrictions(node) or self._rejection_of(node)
            if rejection is None:
                feasible.append(node)
            else:
                rejections[node.name] = rejection
            if sample is not None and len(feasible) >= sample.enough:
                break
        if self._snapshot.devices is not None:
            error = next((rejection for rejection in rejections.values() if rejection.is_error), None)
            if error is not None:
                return FeasibleNodes((), rejections, error)
        return FeasibleNodes(feasible, rejections)


def rejection_on(
    pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot, profile: Profile
) -> Rejection | None:
    """Return why a node of the snapshot is not feasible; None if it is."""
    checks = _checks_of(pod, snapshot, profile)
    if isinstance(checks, Rejection):
        return checks
    return _rejection_of(checks, pod, node, snapshot, profile)


def _checks_of(pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile) -> _Checks | Rejection:
    checks: list[NamedCheck] = []
    restrictions: dict[str, Restriction] = {}
    for row in profile.filters:
        plugin, check = row.name, row.filter(pod, snapshot)
        if isinstance(check, Rejection):
            return check._replace(plugin=plugin)
        if isinstance(check, Restriction):
            restrictions[plugin] = check
            check = check.check
        checks += [] if check is None else [(plugin, check)]
    return _Checks(checks, restrictions)


def _nominees_of(pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot) -> Sequence[PodInfo]:
    """Return the pods of equal or higher priority that are nominated for the node."""
    return [
        nominee
        for nominee in snapshot.nominees(node.name)
        if nominee.priority >= pod.priority and nominee.view.uid != pod.view.uid
    ]


def _rejection_with(
    nominees: Sequence[PodInfo],
    pod: PodInfo,
    node: NodeInfo,
    snapshot: ClusterSnapshot,
    profile: Profile,
) -> Rejection | None:
    """Return why a node is not feasible if nominated pods run there."""
    full_node = node.copy()
    for nominee in nominees:
        full_node.add(nominee)
    nodes = [full_node if other.name == node.name else other for other in snapshot.nodes]
    checks = _checks_of(pod, replace(snapshot, nodes=nodes), profile)
    return checks if isinstance(checks, Rejection) else first_rejection(checks.checks, full_node)


def _rejection_of(
    checks: _Checks, pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot, profile: Profile
) -> Rejection | None:
    """Return why a node is not feasible, with and without the pods that are nominated for it; None if it is.

    A node is rejected if it or the pod has fields of wrong types.
    """
    try:
        nominees = _nominees_of(pod, node, snapshot)
        rejection = _rejection_with(nominees, pod, node, snapshot, profile) if nominees else None
        return rejection or first_rejection(checks.checks, node)
    except MALFORMED_OBJECT_ERRORS:
        return MALFORMED


def first_rejection(checks: Iterable[NamedCheck], node: NodeInfo) -> Rejection | None:
    """Return the rejection by the first check that rejects a node, with the plugin; None if all accept it."""
    for plugin, check in checks:
        rejection = check(node)
        if rejection is not None:
            return rejection._replace(plugin=plugin)
    return None


def rejections_by_node(
    pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile
) -> Mapping[str, Sequence[Rejection]]:
    """Return the rejections of each node by all plugins, where a decision has that of the first one.

    Raises PluginFailure.
    """
    checks = _checks_of(pod, snapshot, profile)
    if isinstance(checks, Rejection):
        return {node.name: [checks] for node in snapshot.nodes}
    return {node.name: _all_rejections(checks, node) for node in snapshot.nodes}


def _all_rejections(checks: _Checks, node: NodeInfo) -> Sequence[Rejection]:
    rejections: list[Rejection] = []
    if restricted := checks.of_restrictions(node):
        rejections.append(restricted)
    for plugin, check in checks.checks:
        try:
            rejection = check(node)
        except MALFORMED_OBJECT_ERRORS:
            rejection = MALFORMED
        if rejection is not None and not (restricted and plugin == restricted.plugin):
            rejections.append(rejection._replace(plugin=plugin))
    return rejections


def scores_by_plugin(
    pod: PodInfo,
    snapshot: ClusterSnapshot,
    feasible: Sequence[NodeInfo],
    profile: Profile = DEFAULT_PROFILE,
) -> Mapping[str, Sequence[int]]:
    """Return the weighted scores of the feasible nodes by plugin, without plugins that score all nodes alike.

    Raises PluginFailure.
    """
    scores = {}
    for plugin in profile.scores:
        values = plugin.score(pod, snapshot, feasible)
        if values is not None:
            scores[plugin.name] = [plugin.weight * value for value in values]
    return scores


def best_nodes(
    pod: PodInfo,
    snapshot: ClusterSnapshot,
    feasible: Sequence[NodeInfo],
    profile: Profile = DEFAULT_PROFILE,
    more: Mapping[str, int] = NO_SCORES,
) -> list[NodeInfo]:
    """Return the nodes with the highest total score, with what is not from plugins by name. Raises PluginFailure."""
    if len(feasible) == 1:
        return [*feasible]
    scores = [*scores_by_plugin(pod, snapshot, feasible, profile).values()]
    scores.append([more.get(node.name, 0) for node in feasible])
    totals = [sum(values) for values in zip(*scores, strict=True)]
    highest = max(totals)
    return [node for node, total in zip(feasible, totals, strict=True) if total == highest]


def fit_error_message(rejections: Iterable[Rejection], nodes: int) -> str:
    """Return upstream's message, such as `0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu.`"""
    counts = Counter(reason for rejection in rejections for reason in rejection.reasons)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available:" + (f" {reasons}." if reasons else "")


def diagnosis(feasible_nodes: FeasibleNodes, nodes: int) -> str:
    """Return the message of a pod without feasible nodes; `nodes` is the number of nodes."""
    if not nodes:
        return "no nodes available to schedule pods"
    if feasible_nodes.prefilter_rejection is not None and feasible_nodes.prefilter_rejection.is_error:
        return feasible_nodes.prefilter_rejection.reasons[0]
    if feasible_nodes.prefilter_rejection is not None:
        return f"0/{nodes} nodes are available: {', '.join(feasible_nodes.prefilter_rejection.reasons)}."
    return fit_error_message(feasible_nodes.rejections.values(), nodes)
