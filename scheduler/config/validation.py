"""The rules for a KubeSchedulerConfiguration, with upstream's messages, and what mockube does not support.

Upstream: apis/config/validation.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec.structs import fields

from mockube.apimachinery import names
from mockube.apimachinery.durations import parse_duration
from mockube.apimachinery.errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.resource_names import is_extended
from mockube.client.component_helpers.node_selectors import check_expression

from . import args
from .types import Extender, KubeSchedulerConfiguration, KubeSchedulerProfile, Plugins

_REMOVED_PLUGINS: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_REMOVED: Final = (
    'was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
)
_NOT_IMPLEMENTED: Final = (
    "DeferredPodScheduling",
    "GangScheduling",
    "PodGroupPodsCount",
    "TopologyPlacementGenerator",
)
"""The plugins of pod groups and of resizes, which are off by default."""
_NOT_IMPLEMENTED_POINTS: Final = ("placementGenerate", "placementScore", "podGroupPostFilter")
_NO_SUPPORT: Final = "mockube does not support it"
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_STRATEGIES: Final = (args.LEAST_ALLOCATED, args.MOST_ALLOCATED, args.REQUESTED_TO_CAPACITY_RATIO)
_MAX_PERCENTAGE: Final = 100
_MAX_SCORE: Final = 10
"""The maximum score of a point of a shape."""

Errors = Iterator[FieldError]


def validate(configuration: KubeSchedulerConfiguration, gates: FeatureGates) -> Errors:
    """Yield the errors of a configuration, in upstream's order."""
    if configuration.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        yield invalid(ROOT.child("parallelism"), configuration.parallelism, detail)
    yield from _profiles(configuration.profiles, gates)
    yield from _percentage(ROOT, configuration.percentage_of_nodes_to_score)
    initial_backoff, max_backoff = (
        configuration.pod_initial_backoff_seconds,
        configuration.pod_max_backoff_seconds,
    )
    if initial_backoff <= 0:
        yield invalid(ROOT.child("podInitialBackoffSeconds"), initial_backoff, "must be greater than 0")
    if max_backoff < initial_backoff:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid(ROOT.child("podMaxBackoffSeconds"), max_backoff, detail)
    yield from _extenders(ROOT.child("extenders"), configuration.extenders)


def _percentage(path: Path, percentage: int | None) -> Errors:
    if percentage is not None and not 0 <= percentage <= _MAX_PERCENTAGE:
        yield invalid(path.child("percentageOfNodesToScore"), percentage, "not in valid range [0-100]")


def _profiles(profiles: Sequence[KubeSchedulerProfile], gates: FeatureGates) -> Errors:
    seen: set[str] = set()
    for number, profile in enumerate(profiles):
        path = ROOT.child("profiles").index(number)
        if not profile.scheduler_name:
            yield required(path.child("schedulerName"))
        yield from _percentage(path, profile.percentage_of_nodes_to_score)
        yield from _plugins(path.child("plugins"), profile.plugins)
        yield from _plugin_config(path, profile, gates)
        if profile.scheduler_name and profile.scheduler_name in seen:
            yield duplicate(path.child("schedulerName"), profile.scheduler_name)
        seen.add(profile.scheduler_name or "")


def _plugins(path: Path, plugins: Plugins) -> Errors:
    for field in fields(plugins):
        name, chosen = field.encode_name, getattr(plugins, field.name)
        if name in _NOT_IMPLEMENTED_POINTS and (chosen.enabled or chosen.disabled):
            yield forbidden(path.child(name), _NO_SUPPORT)
        for index, plugin in enumerate(chosen.enabled):
            place = path.child(name, "enabled").index(index)
            if plugin.name in _REMOVED_PLUGINS:
                yield invalid(place, plugin.name, _REMOVED)
            if plugin.name in _NOT_IMPLEMENTED:
                yield invalid(place, plugin.name, _NO_SUPPORT)


def _plugin_config(path: Path, profile: KubeSchedulerProfile, gates: FeatureGates) -> Errors:
    seen: set[str] = set()
    for index, row in enumerate(profile.plugin_config):
        place = path.child("pluginConfig").index(index)
        if row.name in seen:
            yield duplicate(place, row.name)
        seen.add(row.name)
        if row.name in _REMOVED_PLUGINS:
            yield invalid(place, row.name, _REMOVED)
        if row.name == "VolumeBinding":
            yield from _volume_binding(place.child("args"), row.args, gates)
        elif row.name in _RULES:
            yield from _RULES[row.name](place.child("args"), row.args)


def _extenders(path: Path, extenders: Sequence[Extender]) -> Errors:
    seen: set[str] = set()
    for number, extender in enumerate(extenders):
        place = path.index(number)
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(place.child("weight"), extender.weight, "must have a positive weight applied to it")
        for index, resource in enumerate(extender.managed_resources):
            name, name_path = resource.name, place.child("managedResources").index(index).child("name")
            problems = names.check_label_key(name)
            if not problems and not is_extended(name):
                problems = ["is an invalid extended resource name"]
            yield from (invalid(name_path, name, problem) for problem in problems)
            if name in seen:
                yield invalid(name_path, name, "duplicate extender managed resource name")
            seen.add(name)
        yield from _url_prefix(place.child("urlPrefix"), extender.url_prefix)
        yield from _http_timeout(place.child("httpTimeout"), extender.http_timeout)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        detail = "only one extender can implement bind"
        yield invalid(path, f"found {binders} extenders implementing bind", detail)


def _url_prefix(path: Path, url: str) -> Errors:
    """Refuse a URL to which no request can be sent. kube-scheduler starts with it, and then each pod fails."""
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port that is no number
        is_complete = False
    if not is_complete:
        yield invalid(path, url, "must be a URL such as http://127.0.0.1:8888/scheduler")


def _http_timeout(path: Path, timeout: str) -> Errors:
    """Refuse a negative timeout, which is none for kube-scheduler: one extender that hangs would stop all pods."""
    if parse_duration(timeout) < 0:
        yield invalid(path, timeout, "must be greater than or equal to 0")


# --- the arguments of plugins


def _default_preemption(path: Path, plugin_args: args.DefaultPreemptionArgs) -> Errors:
    percentage, absolute = (
        plugin_args.min_candidate_nodes_percentage,
        plugin_args.min_candidate_nodes_absolute,
    )
    percentage_path = path.child("minCandidateNodesPercentage")
    absolute_path = path.child("minCandidateNodesAbsolute")
    if not 0 <= percentage <= _MAX_PERCENTAGE:
        yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        detail = "cannot be zero at the same time as "
        yield invalid(percentage_path, percentage, f"{detail}minCandidateNodesAbsolute")
        yield invalid(absolute_path, absolute, f"{detail}minCandidateNodesPercentage")


def _inter_pod_affinity(path: Path, plugin_args: args.InterPodAffinityArgs) -> Errors:
    weight = plugin_args.hard_pod_affinity_weight
    if not 0 <= weight <= _MAX_PERCENTAGE:
        yield invalid(path.child("hardPodAffinityWeight"), weight, "not in valid range [0, 100]")


def _topology_spread(path: Path, plugin_args: args.PodTopologySpreadArgs) -> Errors:
    type_path, kind = path.child("defaultingType"), plugin_args.defaulting_type
    if kind not in (args.SYSTEM, args.LIST):
        yield not_supported(type_path, kind, (args.SYSTEM, args.LIST))
    elif kind == args.SYSTEM and plugin_args.default_constraints:
        yield invalid(type_path, kind, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(plugin_args.default_constraints):
        place = path.child("defaultConstraints").index(index)
        yield from _constraint(place, constraint)
        pair = constraint.topology_key, constraint.when_unsatisfiable
        if pair in seen:
            yield duplicate(place, f"{{{pair[0]}, {pair[1]}}}")
        seen.add(pair)


def _constraint(path: Path, constraint: args.TopologySpreadConstraint) -> Errors:
    if constraint.max_skew <= 0:
        yield invalid(path.child("maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
    key_path, key = path.child("topologyKey"), constraint.topology_key
    if not key:
        yield required(key_path, "can not be empty")
    else:
        yield from (invalid(key_path, key, problem) for problem in names.check_label_key(key))
    action_path, action = path.child("whenUnsatisfiable"), constraint.when_unsatisfiable
    if not action:
        yield required(action_path, "can not be empty")
    elif action not in _ACTIONS:
        yield not_supported(action_path, action, _ACTIONS)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(path.child("labelSelector"), detail)


def _balanced_allocation(path: Path, plugin_args: args.NodeResourcesBalancedAllocationArgs) -> Errors:
    seen: set[str] = set()
    for index, resource in enumerate(plugin_args.resources):
        place = path.child("resources").index(index)
        if resource.name in seen:
            yield duplicate(place.child("name"), resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(place.child("weight"), resource.weight, "must be 1")


def _resources_fit(path: Path, plugin_args: args.NodeResourcesFitArgs) -> Errors:
    for index, name in enumerate(plugin_args.ignored_resources):
        place = path.child("ignoredResources").index(index)
        yield from (invalid(place, name, problem) for problem in names.check_label_key(name))
    for index, group in enumerate(plugin_args.ignored_resource_groups):
        place = path.child("ignoredResourceGroups").index(index)
        if "/" in group:
            yield invalid(place, group, "resource group name can't contain '/'")
        yield from (invalid(place, group, problem) for problem in names.check_label_key(group))
    yield from _strategy(path.child("scoringStrategy"), plugin_args.scoring_strategy)


def _strategy(path: Path, strategy: args.ScoringStrategy) -> Errors:
    if strategy.type not in _STRATEGIES:
        yield not_supported(path.child("type"), strategy.type, _STRATEGIES)
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= _MAX_PERCENTAGE:
            place = path.child("resources").index(index).child("weight")
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(place, resource.weight, detail)
    ratio, ratio_path = strategy.requested_to_capacity_ratio, path.child("requestedToCapacityRatio")
    if strategy.type != args.REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            yield forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio")
    elif ratio is None:
        yield required(ratio_path, "must be specified when type is RequestedToCapacityRatio")
    else:
        yield from _shape(ratio_path.child("shape"), ratio.shape)


def _shape(path: Path, shape: args.Shape) -> Errors:
    if not shape:
        yield required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            detail = "values must be sorted in increasing order"
            yield invalid(path.index(index).child("utilization"), shape[index].utilization, detail)
            break
    for index, point in enumerate(shape):
        place = path.index(index)
        if not 0 <= point.utilization <= _MAX_PERCENTAGE:
            yield invalid(place.child("utilization"), point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= _MAX_SCORE:
            yield invalid(place.child("score"), point.score, f"not in valid range [0, {_MAX_SCORE}]")


def _node_affinity(path: Path, plugin_args: args.NodeAffinityArgs) -> Errors:
    affinity = plugin_args.added_affinity
    if affinity is None:
        return
    base = path.child("addedAffinity")
    if affinity.required is not None:
        place = base.child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        for index, term in enumerate(affinity.required.node_selector_terms):
            yield from _term(place.index(index), term)
    place = base.child("preferredDuringSchedulingIgnoredDuringExecution")
    for index, preferred in enumerate(affinity.preferred):
        yield from _term(place.index(index), preferred.preference)


def _term(path: Path, term: args.NodeSelectorTerm) -> Errors:
    for index, requirement in enumerate(term.match_expressions):
        place = path.child("matchExpressions").index(index)
        yield from check_expression(requirement.key, requirement.operator, requirement.values, place)
    for index, requirement in enumerate(term.match_fields):
        place = path.child("matchFields").index(index)
        if requirement.operator not in ("In", "NotIn"):
            yield not_supported(place.child("operator"), requirement.operator, ("In", "NotIn"))
        if requirement.key != "metadata.name":
            yield invalid(place.child("key"), requirement.key, "not a valid field selector key")
        if len(requirement.values) != 1:
            yield required(place.child("values"), "must have one element")


def _volume_binding(path: Path, plugin_args: args.VolumeBindingArgs, gates: FeatureGates) -> Errors:
    if plugin_args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid(path.child("bindTimeoutSeconds"), plugin_args.bind_timeout_seconds, detail)
    if plugin_args.shape and gates.is_on("StorageCapacityScoring"):
        yield from _shape(path.child("shape"), plugin_args.shape)
    elif plugin_args.shape:
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield forbidden(path.child("shape"), detail)


_RULES: Final[Mapping[str, Callable[[Path, Any], Errors]]] = {
    "DefaultPreemption": _default_preemption,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _resources_fit,
    "PodTopologySpread": _topology_spread,
}
