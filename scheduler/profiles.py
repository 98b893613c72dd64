"""The profiles that run: built from a configuration, from kube-scheduler's plugins and from plugins of the user's own."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.wellknown import LABEL_HOSTNAME

from .config.args import (
    ARGS,
    DefaultPreemptionArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    VolumeBindingArgs,
)
from .config.plugin_sets import POINTS, EnabledPlugins, PluginError
from .config.types import KubeSchedulerConfiguration, KubeSchedulerProfile, PluginConfig
from .in_tree import DEFAULT_PREEMPTION, DYNAMIC_RESOURCES, IN_TREE, VOLUME_BINDING, prefilter_only
from .plugin import OwnPlugin, SchedulerPlugin, filter_plugin, points_of, score_plugin
from .pods import DEFAULT_SCHEDULER
from .profile import FilterPlugin, Profile, ScorePlugin

if TYPE_CHECKING:
    from .config.extender_access import ExtenderAccess

_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    VOLUME_BINDING: ("filter", "reserve", "pre_bind"),
    DYNAMIC_RESOURCES: ("pre_enqueue", "pre_filter", "filter", "post_filter", "reserve", "pre_bind"),
}
"""The extension points at which a plugin must be on or off together: the parts of a plugin need each other."""

Plugins = Mapping[str, OwnPlugin]
"""Plugins of the user's own by name."""


class SchedulerSettings(Struct, frozen=True, kw_only=True):
    """What the scheduler runs with."""

    profiles: Mapping[str, Profile]
    """By the name that pods have as their `schedulerName`."""
    extenders: "tuple[ExtenderAccess, ...]" = ()
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    warnings: Sequence[str] = field(default_factory=tuple)
    """What of the configuration has no effect."""


def build_settings(
    configuration: KubeSchedulerConfiguration, plugins: Plugins, default_plugins: Collection[str] = ()
) -> SchedulerSettings:
    """Build what runs from a valid configuration; raise PluginError for plugins that cannot run together.

    The `default_plugins` are plugins of the user's own that are on unless a profile disables them.
    """
    profiles: dict[str, Profile] = {}
    warnings: list[str] = []
    percentage = configuration.percentage_of_nodes_to_score
    if configuration.extenders and percentage is None:
        percentage = 0  # Each node that is looked at is sent to extenders.
    for number, chosen in enumerate(configuration.profiles or (KubeSchedulerProfile(),)):
        name = chosen.scheduler_name or DEFAULT_SCHEDULER
        try:
            built = _ProfileBuilder(_without_managed(chosen, configuration), name, plugins, default_plugins)
            profiles[name] = built.profile(percentage)
        except PluginError as error:
            raise PluginError(
                f"initializing profiles: creating profile for scheduler name {name}: {error}"
            ) from error
        warnings += (f"profiles[{number}].plugins: {warning}" for warning in built.warnings())
    return SchedulerSettings(
        profiles=profiles,
        initial_backoff=configuration.pod_initial_backoff_seconds,
        max_backoff=configuration.pod_max_backoff_seconds,
        warnings=tuple(warnings),
    )


def _without_managed(
    profile: KubeSchedulerProfile, configuration: KubeSchedulerConfiguration
) -> KubeSchedulerProfile:
    """Return a profile whose NodeResourcesFit ignores what extenders manage, instead of what its arguments say."""
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return profile
    name = "NodeResourcesFit"
    others = [row for row in profile.plugin_config if row.name != name]
    plugin_args = next(
        (row.args for row in profile.plugin_config if row.name == name), NodeResourcesFitArgs()
    )
    row = PluginConfig(name=name, args=replace(plugin_args, ignored_resources=ignored))
    return replace(profile, plugin_config=(*others, row))


class _ProfileBuilder:
    def __init__(
        self, chosen: KubeSchedulerProfile, name: str, own: Plugins, default_plugins: Collection[str]
    ) -> None:
        self._chosen, self._name = chosen, name
        points = {plugin: row.all_points for plugin, row in IN_TREE.items()}
        points |= {plugin: points_of(row) for plugin, row in own.items()}
        weights = {plugin: row.weight for plugin, row in IN_TREE.items()}
        weights |= {plugin: own[plugin].weight for plugin in default_plugins}
        self._enabled = EnabledPlugins(chosen.plugins, points, weights)
        self._args = {one.name: one.args for one in chosen.plugin_config}
        self._check()
        on = {plugin for point in ("filter", "score") for plugin in self._enabled.at(point)}
        self._own = {
            plugin: _instance(plugin, row, self._args.get(plugin))
            for plugin, row in own.items()
            if plugin in on
        }

    def _check(self) -> None:
        at = self._enabled.at
        name = quote(self._name)
        if at("queue_sort") != ["PrioritySort"]:
            raise PluginError(
                f"only one queue sort plugin required for profile with scheduler name {name}, "
                f"but got {len(at('queue_sort'))}"
            )
        if not at("bind"):
            raise PluginError(f"at least one bind plugin is needed for profile with scheduler name {name}")
        if problem := next(self._problems(), ""):
            raise PluginError(f"{problem}, which mockube does not support")

    def _problems(self) -> Iterator[str]:
        at = self._enabled.at
        for plugin, points in _TOGETHER.items():
            on = [point for point in points if plugin in at(point)]
            if on and len(on) < len(points):
                off = next(point for point in points if point not in on)
                yield f'plugin "{plugin}" is on at {POINTS[on[0]][0]} and off at {POINTS[off][0]}'
        for point, before in (("filter", "pre_filter"), ("score", "pre_score")):
            for plugin in at(point):
                if self._needs_first(plugin, point) and plugin not in at(before):
                    yield f'plugin "{plugin}" is on at {POINTS[point][0]} and off at {POINTS[before][0]}'

    @staticmethod
    def _needs_first(plugin: str, point: str) -> bool:
        row = IN_TREE.get(plugin)
        if row is None:
            return False
        return row.is_filtered_first if point == "filter" else row.is_scored_first

    def warnings(self) -> Iterator[str]:
        if "SchedulingGates" not in self._enabled.at("pre_enqueue"):
            yield "SchedulingGates cannot be disabled: pods with scheduling gates still wait"

    def profile(self, percentage: int | None) -> Profile:
        own_percentage = self._chosen.percentage_of_nodes_to_score
        preempts = DEFAULT_PREEMPTION in self._enabled.at("post_filter")
        affinity: NodeAffinityArgs = self._args_of("NodeAffinity")
        volumes: VolumeBindingArgs = self._args_of(VOLUME_BINDING)
        preemption: DefaultPreemptionArgs = self._args_of(DEFAULT_PREEMPTION)
        return Profile(
            name=self._name,
            filters=tuple(self._filters()),
            scores=tuple(self._score(name, weight) for name, weight in self._enabled.weights.items()),
            percentage_of_nodes_to_score=percentage if own_percentage is None else own_percentage,
            preemption=preemption if preempts else None,
            limits_candidates=DEFAULT_PREEMPTION in self._args,
            binds_volumes=VOLUME_BINDING in self._enabled.at("filter"),
            bind_timeout=volumes.bind_timeout_seconds,
            allocates_devices=DYNAMIC_RESOURCES in self._enabled.at("filter"),
            without_hints=frozenset(self._without_hints()),
            names_nodes=any(text in repr(affinity) for text in (LABEL_HOSTNAME, "metadata.name")),
        )

    def _filters(self) -> Iterator[FilterPlugin]:
        filters, prefilters = self._enabled.at("filter"), self._enabled.at("pre_filter")
        for name in filters:
            yield self._filter(name)
        for name in prefilters:
            if name not in filters:
                yield prefilter_only(self._filter(name))

    def _filter(self, name: str) -> FilterPlugin:
        if name in self._own:
            return filter_plugin(self._own[name])
        make = IN_TREE[name].filter
        assert make is not None  # what `all_points` says
        return make(name, self._args_of(name))

    def _score(self, name: str, weight: int) -> ScorePlugin:
        if name in self._own:
            return score_plugin(self._own[name], weight)
        make = IN_TREE[name].score
        assert make is not None  # as above
        return make(name, self._args_of(name), weight)

    def _args_of(self, name: str) -> Any:
        plugin_args, record = self._args.get(name), ARGS.get(name)
        return plugin_args if plugin_args is not None or record is None else record()

    def _without_hints(self) -> Iterator[str]:
        if any(
            one.when_unsatisfiable == "DoNotSchedule"
            for one in self._args_of("PodTopologySpread").default_constraints
        ):
            yield "PodTopologySpread"
        if self._args_of("NodeAffinity").required() is not None:
            yield "NodeAffinity"
        fit = self._args_of("NodeResourcesFit")
        if fit.ignored_resources or fit.ignored_resource_groups:
            yield "NodeResourcesFit"


def _instance(name: str, plugin: OwnPlugin, arguments: Any) -> SchedulerPlugin:
    """Return the object of a plugin with the arguments of its `pluginConfig`."""
    if not isinstance(plugin, type):
        if arguments:
            raise PluginError(f'plugin "{name}" has arguments, but it is an object and not a class')
        return plugin
    try:
        return plugin(**(arguments or {}))
    except Exception as error:
        raise PluginError(f'initializing plugin "{name}": {type(error).__name__}: {error}') from error


DEFAULT_SETTINGS: Final = build_settings(KubeSchedulerConfiguration(), {})
DEFAULT_PROFILE: Final = DEFAULT_SETTINGS.profiles[DEFAULT_SCHEDULER]
