"""Which plugins run at each extension point: the default ones, merged with those of a profile.

Upstream: apis/config/v1/default_plugins.go, framework/runtime (expandMultiPointPlugins).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from .types import Plugin, Plugins, PluginSet

POINTS: Final[Mapping[str, tuple[str, str]]] = {
    "pre_filter": ("preFilter", "PreFilterPlugin"),
    "filter": ("filter", "FilterPlugin"),
    "post_filter": ("postFilter", "PostFilterPlugin"),
    "reserve": ("reserve", "ReservePlugin"),
    "pre_score": ("preScore", "PreScorePlugin"),
    "score": ("score", "ScorePlugin"),
    "pre_bind": ("preBind", "PreBindPlugin"),
    "bind": ("bind", "BindPlugin"),
    "post_bind": ("postBind", "PostBindPlugin"),
    "permit": ("permit", "PermitPlugin"),
    "pre_enqueue": ("preEnqueue", "PreEnqueuePlugin"),
    "queue_sort": ("queueSort", "QueueSortPlugin"),
}
"""The extension points in upstream's order: the name in the configuration, and that in messages."""
ALL: Final = "*"


class PluginError(ValueError):
    """The plugins of a profile cannot run together; the message is upstream's."""


class EnabledPlugins:
    """The names of the plugins of a profile by extension point, in their order, and their weights."""

    def __init__(
        self, plugins: Plugins, points: Mapping[str, Collection[str]], weights: Mapping[str, int]
    ) -> None:
        """`points` are the extension points of each plugin that exists, `weights` the weights of those that are on by default."""
        self._points = points
        defaults = [Plugin(name=name, weight=weight) for name, weight in weights.items()]
        self._multi_point = _merge(defaults, plugins.multi_point)
        self._by_point = {point: self._expand(point, getattr(plugins, point)) for point in POINTS}
        self.weights = self._weights(plugins.score)

    def at(self, point: str) -> Sequence[str]:
        return self._by_point[point]

    def _expand(self, point: str, chosen: PluginSet) -> Sequence[str]:
        """Return the plugins of an extension point: those that it configures anew, those of multiPoint, then its others."""
        explicit = [*self._explicit(point, chosen)]
        disabled = {plugin.name for plugin in chosen.disabled}
        if ALL in disabled:
            return explicit
        expanded = self._of_multi_point(point, disabled | {*explicit})
        of_multi_point = {plugin.name for plugin in self._multi_point} - disabled
        overriding = [name for name in explicit if name in of_multi_point]
        return [*overriding, *expanded, *(name for name in explicit if name not in overriding)]

    def _explicit(self, point: str, chosen: PluginSet) -> Iterator[str]:
        seen = set()
        for plugin in chosen.enabled:
            self._require(point, plugin.name)
            if point not in self._points[plugin.name]:
                raise PluginError(f'plugin "{plugin.name}" does not extend {POINTS[point][1]} plugin')
            if plugin.name in seen:
                raise PluginError(f'plugin "{plugin.name}" already registered as "{POINTS[point][1]}"')
            seen.add(plugin.name)
            yield plugin.name

    def _of_multi_point(self, point: str, without: Collection[str]) -> Sequence[str]:
        names: list[str] = []
        for plugin in self._multi_point:
            self._require(point, plugin.name)
            if point not in self._points[plugin.name] or plugin.name in without:
                continue
            if plugin.name in names:
                raise PluginError(f'plugin "{plugin.name}" already registered as "{POINTS[point][1]}"')
            names.append(plugin.name)
        return names

    def _require(self, point: str, name: str) -> None:
        if name not in self._points:
            raise PluginError(f'{POINTS[point][1]} "{name}" does not exist')

    def _weights(self, chosen: PluginSet) -> Mapping[str, int]:
        """Return the weight of each score: that of `score` counts before that of multiPoint; 0 is 1."""
        weights: dict[str, int] = {}
        for plugin in (*chosen.enabled, *self._multi_point):
            weights.setdefault(plugin.name, plugin.weight or 1)
        self._check_total(weights)
        return {name: weights[name] for name in self.at("score")}

    def _check_total(self, weights: Mapping[str, int]) -> None:
        """Refuse negative weights where upstream does: its sum of the scores so far must not be negative."""
        total = 0
        for name in (name for name in weights if "score" in self._points[name]):
            if total < 0:
                raise PluginError("score plugins: total score of Score plugins could overflow")
            total += weights[name]


def _merge(defaults: Sequence[Plugin], chosen: PluginSet) -> Sequence[Plugin]:
    """Return the default plugins without the disabled ones, as they are configured anew, and then the other enabled ones."""
    disabled = {plugin.name for plugin in chosen.disabled}
    by_name = {plugin.name: plugin for plugin in chosen.enabled}
    remaining = [] if ALL in disabled else [plugin for plugin in defaults if plugin.name not in disabled]
    merged = [by_name.get(plugin.name, plugin) for plugin in remaining]
    return [*merged, *(plugin for plugin in chosen.enabled if all(plugin is not one for one in merged))]
