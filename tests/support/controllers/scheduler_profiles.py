"""Profiles of the scheduler for tests: those that `make scheduling-differential` gives a real one, too."""

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.scheduler.config.files import configuration_of
from mockube.scheduler.profiles import build_settings

_SHAPE = [{"utilization": 0, "score": 2}, {"utilization": 50, "score": 10}, {"utilization": 100, "score": 4}]
_AVOID = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]}
_PREFER = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}


def _args(name, **args):
    return {"name": name, "args": args}


def _strategy(kind, **more):
    return _args("NodeResourcesFit", scoringStrategy={"type": kind, **more})


def _constraint(key, skew, action):
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action}


PACKING = {
    "pluginConfig": [_strategy("MostAllocated", resources=[{"name": "cpu", "weight": 3}, {"name": "memory"}])]
}
OTHER_WEIGHTS = {
    "plugins": {
        "multiPoint": {
            "disabled": [{"name": "PodTopologySpread"}, {"name": "TaintToleration"}],
            "enabled": [{"name": "InterPodAffinity", "weight": 7}],
        },
        "filter": {"enabled": [{"name": "NodeUnschedulable"}, {"name": "InterPodAffinity"}]},
        "score": {
            "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
            "enabled": [{"name": "ImageLocality", "weight": 5}, {"name": "NodeAffinity"}],
        },
        "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
    },
    "pluginConfig": [
        _args("InterPodAffinity", hardPodAffinityWeight=0, ignorePreferredTermsOfExistingPods=True),
    ],
}
SPREADING = {
    "pluginConfig": [
        _args(
            "PodTopologySpread",
            defaultingType="List",
            defaultConstraints=[
                _constraint("topology.kubernetes.io/zone", 2, "DoNotSchedule"),
                _constraint("topology.kubernetes.io/zone", 1, "ScheduleAnyway"),
                _constraint("kubernetes.io/hostname", 2, "ScheduleAnyway"),
            ],
        )
    ]
}
RATIO = {
    "pluginConfig": [
        _strategy("RequestedToCapacityRatio", requestedToCapacityRatio={"shape": _SHAPE}),
        _args(
            "NodeResourcesBalancedAllocation",
            resources=[{"name": "cpu"}, {"name": "memory"}, {"name": "pods"}],
        ),
    ]
}
ADDED_AFFINITY = {
    "pluginConfig": [
        _args(
            "NodeAffinity",
            addedAffinity={
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_AVOID]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 4, "preference": _PREFER}],
            },
        )
    ]
}
CONFIGURATIONS = {
    "packing": [PACKING],
    "weights": [OTHER_WEIGHTS],
    "spreading": [SPREADING],
    "ratio": [RATIO, {"schedulerName": "second", **ADDED_AFFINITY}],
}
"""The profiles of each configuration; the first is that of the pods that name none."""


def tree_of(profiles):
    """Return the configuration with these profiles."""
    named = [{"schedulerName": "default-scheduler", **profile} for profile in profiles]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": named,
    }


def profiles_of(profiles, plugins=(), minor=None):
    """Return the profiles that run, by name, with some plugins of the user's own."""
    gates = FeatureGates() if minor is None else FeatureGates(minor)
    own = {plugin.name: plugin for plugin in plugins}
    return build_settings(configuration_of(tree_of(profiles), gates), own, own).profiles


def names_of(configuration):
    """Return the names of the profiles of a configuration."""
    return [profile["schedulerName"] for profile in tree_of(CONFIGURATIONS[configuration])["profiles"]]


def profile_of(profile, plugins=()):
    (built,) = profiles_of([profile], plugins).values()
    return built
