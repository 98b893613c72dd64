"""The feasible and the best nodes for pods of one signature, kept up to date as nodes change.

A decision for the next pod of a signature costs what changed since the last one, not the number of nodes: nodes that a pod
cannot tell apart are one group, and plugins judge groups. `choice` is the reference, which judges every node anew; it decides for
the few pods that a class cannot judge. KEP-5598 reuses decisions of a signature in kube-scheduler, too.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery.tree import MALFORMED_OBJECT_ERRORS
from mockube.apimachinery.wellknown import LABEL_HOSTNAME

from .choice import (
    MALFORMED,
    FeasibleNodes,
    NamedCheck,
    find_feasible,
    first_rejection,
)
from .cluster import ClusterSnapshot, SchedulerCache
from .filters.filter import GroupFilter, Rejection
from .node_traits import NO_TRAITS, NeedsReference, NodeTraits
from .nodeinfo import NodeInfo
from .plugin_failure import PluginFailure
from .podinfo import PodInfo
from .pods import nominated_node
from .profile import FilterPlugin, Profile
from .profiles import DEFAULT_PROFILE
from .sampling import NodeSample
from .scores.score import GroupScore, Score
from .spreading import spread_selector

_MAX_CLASSES: Final = 64
"""How many classes are kept; the one that was not used for longest is dropped, and made anew when it is needed."""
_MAX_STATES: Final = 4096
"""How many more states of nodes than nodes a class remembers."""


class Group(NamedTuple):
    """What pods of the class see of a node. Nodes of which they see the same are a group."""

    score: int
    """The sum of the scores that depend on a node alone."""
    filter_parts: tuple[Hashable, ...]
    score_parts: tuple[Hashable, ...]
    late_rejections: tuple[Rejection | None, ...]
    """After each filter that judges groups, the rejection by the filters of single nodes that follow it."""
    traits: tuple[Hashable, ...] = ()
    """That by which the claims of pods tell nodes apart."""


FeasibleGroups = Mapping[Group, Sequence[NodeInfo]]
Accepts = Callable[[Group, NodeInfo], bool]
"""Returns whether a single pod accepts a group, by one of its nodes."""


class _Judgement(Struct, frozen=True, eq=False):
    """What holds for all nodes of one state."""

    contributions: tuple[Any, ...]
    rejection: Rejection | None = None
    """The rejection by a filter of single nodes; such nodes are in no group."""
    group: Group | None = None


class PodClass:
    """The pods of one signature, and the groups of nodes as they see them."""

    def __init__(
        self,
        pod: PodInfo,
        snapshot: ClusterSnapshot,
        profile: Profile = DEFAULT_PROFILE,
        traits: NodeTraits = NO_TRAITS,
    ) -> None:
        """Nodes with other `traits` are in other groups."""
        self._pod, self._snapshot = pod, snapshot
        self._traits = traits
        self._early: list[NamedCheck] = []
        self._filters: list[tuple[str, GroupFilter]] = []
        self._late: list[list[NamedCheck]] = []
        """The checks of single nodes that follow each filter of groups."""
        for plugin in profile.filters:
            self._add_filter(plugin)
        self._node_scores: list[tuple[Score, int]] = [
            (plugin.score, plugin.weight) for plugin in profile.scores if plugin.is_node_local
        ]
        self._scores: list[tuple[GroupScore, int]] = [
            (group_score, plugin.weight)
            for plugin in profile.scores
            if plugin.group_form is not None and (group_score := plugin.group_form(pod, snapshot)) is not None
        ]
        self._counted = (*(plugin for _, plugin in self._filters), *(plugin for plugin, _ in self._scores))
        self._judgements: dict[Hashable, _Judgement] = {}
        """By the state of nodes."""
        self._groups: dict[Group, list[NodeInfo]] = {}
        self._nodes: dict[str, tuple[_Judgement, int]] = {}
        """The judgement of each node, and its position in its group, by name."""
        self._generation = 0

    def _add_filter(self, plugin: FilterPlugin) -> None:
        if plugin.group_form is not None:
            group_filter = plugin.group_form(self._pod, self._snapshot)
            if group_filter is not None:
                self._filters.append((plugin.name, group_filter))
                self._late.append([])
        elif plugin.is_node_local:
            check = plugin.filter(self._pod, self._snapshot)
            assert check is None or callable(check)  # such filters reject single nodes only
            if check is not None:
                (self._late[-1] if self._late else self._early).append((plugin.name, check))

    @property
    def remembered_states(self) -> int:
        """The number of states of nodes whose judgements are remembered."""
        return len(self._judgements)

    # --- changes of nodes

    def follow(self, cluster: SchedulerCache) -> None:
        """Take over the changes of nodes since the last decision."""
        if not self._nodes:
            alike: defaultdict[Hashable, list[NodeInfo]] = defaultdict(list)
            for node in cluster.nodes():
                alike[self._state_of(node)].append(node)
            for nodes in alike.values():
                self._add(self._judgement(nodes[0]), nodes)
        else:
            for name in cluster.changed_since(self._generation):
                self._update(name, cluster.node(name))
        self._generation = cluster.generation
        if len(self._judgements) > len(self._nodes) + _MAX_STATES:
            self._judgements = {self._state_of(node): self._nodes[node.name][0] for node in cluster.nodes()}

    def _update(self, name: str, node: NodeInfo | None) -> None:
        self._remove(name)
        if node is not None and node.is_known:
            self._add(self._judgement(node), [node])

    def _state_of(self, node: NodeInfo) -> Hashable:
        """Return the state of a node, with the parts that are not in it; labels are in it."""
        return (node.state, self._traits.parts_of(node)) if self._traits.parts else node.state

    def _judgement(self, node: NodeInfo) -> _Judgement:
        state = self._state_of(node)
        judgement = self._judgements.get(state)
        if judgement is None:
            judgement = self._judgements[state] = self._judge(node)
        return judgement

    def _add(self, judgement: _Judgement, nodes: Sequence[NodeInfo]) -> None:
        """Add nodes of the same state."""
        self._count(judgement, len(nodes))
        first = 0
        if judgement.group is not None:
            group = self._groups.setdefault(judgement.group, [])
            first = len(group)
            group.extend(nodes)
        for index, node in enumerate(nodes, first):
            self._nodes[node.name] = (judgement, index)

    def _remove(self, name: str) -> None:
        present = self._nodes.pop(name, None)
        if present is None:
            return
        judgement, index = present
        self._count(judgement, -1)
        if judgement.group is None:
            return
        nodes = self._groups[judgement.group]
        last = nodes.pop()
        if index < len(nodes):  # the last one takes its place
            nodes[index] = last
            self._nodes[last.name] = (self._nodes[last.name][0], index)
        if not nodes:
            del self._groups[judgement.group]

    def _count(self, judgement: _Judgement, times: int) -> None:
        for plugin, contribution in zip(self._counted, judgement.contributions, strict=True):
            if contribution is not None:
                plugin.add(contribution, times)

    def _judge(self, node: NodeInfo) -> _Judgement:
        """Judge a node, and all others of its state, by what does not depend on other nodes."""
        contributions = tuple(plugin.contribution(node) for plugin in self._counted)
        rejection = _first_rejection(self._early, node)
        if rejection is not None:
            return _Judgement(contributions, rejection)
        score = 0
        for score_of, weight in self._node_scores:
            values = score_of(self._pod, self._snapshot, [node])
            score += 0 if values is None else weight * values[0]
        parts = tuple(
            plugin.part(node, contribution)
            for plugin, contribution in zip(self._counted, contributions, strict=True)
        )
        filter_parts, score_parts = parts[: len(self._filters)], parts[len(self._filters) :]
        late_rejections = tuple(_first_rejection(checks, node) for checks in self._late)
        traits = self._traits.of(node)
        return _Judgement(
            contributions, group=Group(score, filter_parts, score_parts, late_rejections, traits)
        )

    # --- decisions

    def feasible_groups(
        self,
        snapshot: ClusterSnapshot,
        sample: NodeSample | None = None,
        accepts: Accepts = lambda _, __: True,
    ) -> FeasibleGroups:
        """Return the feasible nodes by group: all, or those of a sample until there are enough."""
        rejection_of = self._group_check()
        if sample is None:
            return {
                group: nodes
                for group, nodes in self._groups.items()
                if rejection_of(group) is None and accepts(group, nodes[0])
            }
        feasible: defaultdict[Group, list[NodeInfo]] = defaultdict(list)
        is_feasible: dict[Group, bool] = {}
        found = 0
        for node in sample.walk(snapshot.nodes):
            group = self._nodes[node.name][0].group
            if group is not None and group not in is_feasible:
                is_feasible[group] = rejection_of(group) is None
            if group is not None and is_feasible[group] and accepts(group, node):
                feasible[group].append(node)
                found += 1
            if found >= sample.enough:
                break
        return feasible

    def feasible_among(self, names: Iterable[str], accepts: Callable[[NodeInfo], bool]) -> FeasibleGroups:
        """Return the feasible nodes of a few, by group."""
        rejection_of = self._group_check()
        feasible: defaultdict[Group, list[NodeInfo]] = defaultdict(list)
        for name in names:
            judgement, index = self._nodes.get(name, (_NO_JUDGEMENT, 0))
            group = judgement.group
            if (
                group is not None
                and rejection_of(group) is None
                and accepts(node := self._groups[group][index])
            ):
                feasible[group].append(node)
        return feasible

    def best_nodes(
        self,
        feasible: FeasibleGroups,
        snapshot: ClusterSnapshot,
        more: Iterable[tuple[Score, int]] = (),
        pod: PodInfo | None = None,
    ) -> Sequence[NodeInfo]:
        """Return the nodes with the highest score of feasible groups, of which there is one at least. Raises PluginFailure.

        `more` are scores, with their weights, that look at one node of each group for a `pod`.
        """
        groups = [*feasible]
        if len(groups) == 1 and len(feasible[groups[0]]) == 1:
            return feasible[groups[0]]  # Scores do not matter, nor whether they fail.
        totals = [group.score for group in groups]
        sizes = [len(nodes) for nodes in feasible.values()]
        for position, (plugin, weight) in enumerate(self._scores):
            values = plugin.scores([group.score_parts[position] for group in groups], sizes, snapshot)
            if values is not None:
                totals = [total + weight * value for total, value in zip(totals, values, strict=True)]
        for score, weight in more:
            values = score(pod or self._pod, snapshot, [nodes[0] for nodes in feasible.values()])
            if values is not None:
                totals = [total + weight * value for total, value in zip(totals, values, strict=True)]
        highest = max(totals)
        best = [feasible[group] for group, total in zip(groups, totals, strict=True) if total == highest]
        return best[0] if len(best) == 1 else [*chain.from_iterable(best)]

    def feasible_nodes(self, snapshot: ClusterSnapshot) -> FeasibleNodes:
        """Return what the reference returns: the feasible nodes, and why the others are not."""
        rejection_of = self._group_check()
        by_group = {group: rejection_of(group) for group in self._groups}
        rejections = {}
        for node in snapshot.nodes:
            judgement, _ = self._nodes[node.name]
            rejection = judgement.rejection if judgement.group is None else by_group[judgement.group]
            if rejection is not None:
                rejections[node.name] = rejection
        return FeasibleNodes([node for node in snapshot.nodes if node.name not in rejections], rejections)

    def _group_check(self) -> Callable[[Group], Rejection | None]:
        checks = [(name, plugin.check()) for name, plugin in self._filters]

        def check(group: Group) -> Rejection | None:
            for (name, check_part), part, late_rejection in zip(
                checks, group.filter_parts, group.late_rejections, strict=True
            ):
                rejection = check_part(part)
                if rejection is not None:
                    return rejection._replace(plugin=name)
                if late_rejection is not None:
                    return late_rejection
            return None

        return check


def _first_rejection(checks: Iterable[NamedCheck], node: NodeInfo) -> Rejection | None:
    try:
        return first_rejection(checks, node)
    except MALFORMED_OBJECT_ERRORS:
        return MALFORMED


class ClassOfPod:
    """A class with what only one of its pods asks of nodes: its claims, which are checked once for each group."""

    def __init__(
        self,
        pod_class: PodClass,
        pod: PodInfo,
        profile: Profile,
        demands: "_Demands",
        names: frozenset[str] | None,
    ) -> None:
        """`names` are those of the only nodes that can be feasible; None if others can be, too."""
        self._class, self._pod, self._profile = pod_class, pod, profile
        self._demands, self._names = demands, names
        self._by_traits: dict[tuple[Hashable, ...], bool] = {}
        self._has_error = False
        """Whether a check failed, so that the attempt fails whatever the other nodes are."""

    def feasible_groups(self, snapshot: ClusterSnapshot, sample: NodeSample | None = None) -> FeasibleGroups:
        if self._names is not None and sample is None:
            groups = self._class.feasible_among(self._names, self._accepts_node)
        else:
            groups = self._class.feasible_groups(snapshot, sample, self._accepts)
        return {} if self._has_error else groups

    def best_nodes(self, feasible: FeasibleGroups, snapshot: ClusterSnapshot) -> Sequence[NodeInfo]:
        return self._class.best_nodes(feasible, snapshot, self._demands.scores, self._pod)

    def feasible_nodes(self, snapshot: ClusterSnapshot) -> FeasibleNodes:
        """Return what the reference returns, with the reasons of each node."""
        return find_feasible(self._pod, snapshot, self._profile)

    def _accepts(self, group: Group, node: NodeInfo) -> bool:
        if self._names is not None:
            return node.name in self._names and self._accepts_node(node)
        if group.traits not in self._by_traits:
            self._by_traits[group.traits] = self._accepts_node(node)
        return self._by_traits[group.traits]

    def _accepts_node(self, node: NodeInfo) -> bool:
        rejection = _first_rejection(self._demands.checks, node)
        self._has_error = self._has_error or (rejection is not None and rejection.is_error)
        return rejection is None


_NO_JUDGEMENT: Final = _Judgement(())


class _Demands(NamedTuple):
    """The checks and the scores of plugins for a single pod, and what tells nodes apart for them."""

    checks: Sequence[NamedCheck]
    scores: Sequence[tuple[Score, int]]
    traits: NodeTraits

    @classmethod
    def of(cls, pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile) -> "_Demands":
        """Raises NeedsReference."""
        checks: list[NamedCheck] = []
        scores: list[tuple[Score, int]] = []
        traits = NO_TRAITS
        for plugin in profile.filters:
            check = plugin.filter(pod, snapshot) if plugin.is_for_single_pods else None
            if check is not None:
                if plugin.traits is None or not callable(check):
                    raise NeedsReference
                traits = traits.join(plugin.traits(pod, snapshot))
                checks.append((plugin.name, check))
        for row in profile.scores:
            if row.is_for_single_pods and row.score(pod, snapshot, ()) is not None:
                if row.traits is None:
                    raise NeedsReference
                traits = traits.join(row.traits(pod, snapshot))
                scores.append((row.score, row.weight))
        return cls(checks, scores, traits)


class PodClasses:
    """The classes of the pods that were scheduled last."""

    def __init__(self, cluster: SchedulerCache) -> None:
        self._cluster = cluster
        self._classes: OrderedDict[Hashable, PodClass] = OrderedDict()

    def forget(self) -> None:
        """Drop all classes, because something changed that they do not follow: the labels of a namespace."""
        self._classes.clear()

    def find(
        self, pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile = DEFAULT_PROFILE
    ) -> PodClass | ClassOfPod | None:
        """Return the class of a pod, up to date; None if only the reference can judge the pod."""
        if _needs_reference(pod, self._cluster, profile):
            return None
        try:
            demands = _Demands.of(pod, snapshot, profile)
        except (NeedsReference, *MALFORMED_OBJECT_ERRORS):
            return None
        names = self._names_of(demands.traits)
        pod_class = self._class_of(pod, snapshot, profile, demands.traits)
        if pod_class is None or not (demands.checks or demands.scores):
            return pod_class
        return ClassOfPod(pod_class, pod, profile, demands, names)

    def _names_of(self, traits: NodeTraits) -> frozenset[str] | None:
        if traits.hosts is None:
            return traits.names
        names = frozenset(self._cluster.nodes_of_hosts(traits.hosts))
        return names if traits.names is None else names & traits.names

    def _class_of(
        self, pod: PodInfo, snapshot: ClusterSnapshot, profile: Profile, traits: NodeTraits
    ) -> PodClass | None:
        selector = spread_selector(pod, snapshot.workloads)
        key = (profile.name, pod.signature, selector, snapshot.topology_keys, traits.key)
        pod_class = self._classes.pop(key, None) or PodClass(pod, snapshot, profile, traits)
        try:
            pod_class.follow(self._cluster)
        except (PluginFailure, *MALFORMED_OBJECT_ERRORS):  # as the reference will say
            return None
        self._classes[key] = pod_class
        if len(self._classes) > _MAX_CLASSES:
            self._classes.popitem(last=False)
        return pod_class


def _needs_reference(pod: PodInfo, cluster: SchedulerCache, profile: Profile) -> bool:
    """Return whether a pod is judged by what groups of nodes do not have: names of nodes, or a nomination."""
    if nominated_node(pod.view.object) or cluster.has_ambiguous_hostnames:
        return True
    return profile.names_nodes or _names_nodes(pod)


def _names_nodes(pod: PodInfo) -> bool:
    """Return whether the pod selects nodes by their name or hostname."""
    selector: Mapping[str, str] = pod.spec.get("nodeSelector") or {}
    affinity = pod.affinity.get("nodeAffinity")
    if LABEL_HOSTNAME in selector:
        return True
    return affinity is not None and any(name in repr(affinity) for name in (LABEL_HOSTNAME, "matchFields"))
