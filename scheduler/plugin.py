"""Plugins of the user's own: filters and scores in Python, beside those of kube-scheduler. docs/guides/scheduler.md has an example."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeGuard, TypeVar

from .cluster import ClusterSnapshot
from .filters.filter import Check, Rejection
from .nodeinfo import NodeInfo
from .plugin_failure import PluginFailure
from .podinfo import PodInfo
from .profile import FilterPlugin, ScorePlugin
from .scores.score import MAX_NODE_SCORE, NothingCounted, score_nodes

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")


class SchedulerPlugin:
    """The base class of a plugin, which overrides `filter`, `score` or both. They must return soon, because all pods wait.

    The arguments of its `pluginConfig` are the keyword arguments of the constructor.
    """

    name: str = ""
    """The name in the configuration and in messages; without one, that of the class."""
    weight: int = 1
    """The weight of the score, unless the configuration sets one."""
    judges_alike: bool = False
    """Whether pods and nodes that are alike to kube-scheduler's plugins are alike to this one, too.

    Then a decision is as fast as without the plugin. A plugin that reads the name of a node or an annotation is not so.
    """

    def filter(self, pod: PodInfo, node: NodeInfo) -> str | None:
        """Return the reason why the pod may not run on the node; None if it may."""
        raise NotImplementedError

    def score(self, pod: PodInfo, node: NodeInfo) -> int:
        """Return how good the node is for the pod: a number from 0 to 100, unless `normalize` makes it one."""
        raise NotImplementedError

    def normalize(self, scores: Sequence[int]) -> Sequence[int]:
        """Return the scores from 0 to 100 for those of all feasible nodes."""
        return scores


OwnPlugin = SchedulerPlugin | type[SchedulerPlugin]
"""A plugin of the user's own; of a class, each profile has its own object."""


def is_plugin(plugin: object) -> TypeGuard[OwnPlugin]:
    return issubclass(_class_of(plugin), SchedulerPlugin)


def name_of(plugin: OwnPlugin) -> str:
    return plugin.name or _class_of(plugin).__name__


def points_of(plugin: OwnPlugin) -> frozenset[str]:
    """Return the extension points that a plugin implements."""
    kind = _class_of(plugin)
    return frozenset(
        point for point in ("filter", "score") if getattr(kind, point) is not getattr(SchedulerPlugin, point)
    )


def _class_of(plugin: object) -> type:
    return plugin if isinstance(plugin, type) else type(plugin)


def filter_plugin(plugin: SchedulerPlugin) -> FilterPlugin:
    name = name_of(plugin)

    def make_check(pod: PodInfo, _: ClusterSnapshot) -> Check:
        def check(node: NodeInfo) -> Rejection | None:
            reason = _guarded(
                lambda: _checked_reason(plugin.filter(pod, node)), f'running "{name}" filter plugin: '
            )
            return None if reason is None else Rejection((reason,))

        return check

    return FilterPlugin(name, make_check, is_node_local=plugin.judges_alike)


def score_plugin(plugin: SchedulerPlugin, weight: int) -> ScorePlugin:
    def scores(pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        return score_nodes(_UserScore(pod, plugin), nodes, snapshot) if nodes else []

    group_form = (lambda pod, _: _UserScore(pod, plugin)) if plugin.judges_alike else None
    return ScorePlugin(name_of(plugin), scores, weight, group_form=group_form)


class _UserScore(NothingCounted):
    """The score of a plugin. The part of a node is its score before normalization."""

    def __init__(self, pod: PodInfo, plugin: SchedulerPlugin) -> None:
        self._pod, self._plugin = pod, plugin
        self._prefix = f'running Score plugins: plugin "{name_of(plugin)}" failed with: '

    def part(self, node: NodeInfo, _: None) -> int:
        return _guarded(lambda: _checked_score(self._plugin.score(self._pod, node)), self._prefix)

    def scores(self, parts: Sequence[int], _: Sequence[int], __: ClusterSnapshot) -> list[int]:
        values = _guarded(lambda: [*map(_checked_score, self._plugin.normalize(parts))], self._prefix)
        if len(values) != len(parts):
            raise PluginFailure(f"{self._prefix}normalize returned {len(values)} scores for {len(parts)}")
        for value in values:
            if not 0 <= value <= MAX_NODE_SCORE:
                raise PluginFailure(
                    f'running Normalize on Score plugins: plugin "{name_of(self._plugin)}" returns an invalid score {value}, '
                    f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
                )
        return values


def _guarded(call: Callable[[], T], prefix: str) -> T:
    """Call a plugin; raise PluginFailure for any error of it, so that only the pod fails, and log where it is."""
    try:
        return call()
    except Exception as error:
        LOG.exception("scheduler: a plugin failed")
        raise PluginFailure(_encodable(f"{prefix}{type(error).__name__}: {error}")) from error


def _checked_reason(reason: Any) -> str | None:
    if reason is None:
        return None
    if not isinstance(reason, str) or not reason:
        raise TypeError(f"filter returned {reason!r}, not a reason or None")
    return _encodable(reason)


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, as names of files may have: neither an event nor a status could be written."""
    return text.encode(errors="replace").decode()


def _checked_score(score: Any) -> int:
    if isinstance(score, bool) or not isinstance(score, int):
        raise TypeError(f"score returned {score!r}, not an int")
    return score
