"""The bounds of what a configuration may say: the last accepted values, and the first refused ones with upstream's messages."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.component_base.configuration_files import ConfigurationError
from mockube.scheduler.config.files import configuration_of

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
URL = "http://127.0.0.1:80"
ARGS = "profiles[0].pluginConfig[0].args."
OUT_OF_PERCENT = "not in valid range [0, 100]"
MISSING = "Required value: can not be empty"


def refused(tree, gates=None):
    """Return the message with which a configuration is refused; "" if it is accepted."""
    try:
        configuration_of({**HEAD, **tree}, gates or FeatureGates())
    except ConfigurationError as error:
        return str(error)
    return ""


def invalid(value, detail):
    text = f'"{value}"' if isinstance(value, str) else value
    return f"Invalid value: {text}: {detail}"


def refused_args(plugin, args, gates=None):
    """Return the messages about arguments by their fields."""
    message = refused({"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}, gates)
    problems = (
        message.removeprefix("[").removesuffix("]" if message.startswith("[") else "").split(f", {ARGS}")
    )
    return [problem.removeprefix(ARGS) for problem in problems if problem]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parallelism": 1}, ""),
        ({"percentageOfNodesToScore": 0}, ""),
        ({"percentageOfNodesToScore": 100}, ""),
        (
            {"percentageOfNodesToScore": -1},
            f"percentageOfNodesToScore: {invalid(-1, 'not in valid range [0-100]')}",
        ),
        (
            {"profiles": [{"percentageOfNodesToScore": 101}]},
            f"profiles[0].percentageOfNodesToScore: {invalid(101, 'not in valid range [0-100]')}",
        ),
        ({"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}, ""),
        ({"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}, ""),
        (
            {"profiles": [{}, {}]},
            "[profiles[0].schedulerName: Required value, profiles[1].schedulerName: Required value]",
        ),
        (
            {"profiles": [{"schedulerName": ""}, {"schedulerName": ""}]},
            "[profiles[0].schedulerName: Required value, profiles[1].schedulerName: Required value]",
        ),
        (
            {"profiles": [{"plugins": {"placementScore": {"disabled": [{"name": "A"}]}}}]},
            "profiles[0].plugins.placementScore: Forbidden: mockube does not support it",
        ),
        ({"profiles": [{"plugins": {"placementScore": {}}}]}, ""),
        (
            {"profiles": [{"pluginConfig": [{"name": "EBSLimits"}]}]},
            (
                'profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
                '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
            ),
        ),
        ({"profiles": [{"pluginConfig": [{"name": "A"}, {"name": "B"}]}]}, ""),
        ({"extenders": [{"urlPrefix": URL}]}, ""),
        ({"extenders": [{"urlPrefix": URL, "prioritizeVerb": "p", "weight": 1}]}, ""),
        ({"extenders": [{"urlPrefix": URL, "weight": -1}]}, ""),
        ({"extenders": [{"urlPrefix": URL, "bindVerb": "b"}, {"urlPrefix": URL}]}, ""),
        (
            {
                "extenders": [
                    {"urlPrefix": URL, "managedResources": [{"name": "e.com/x"}, {"name": "e.com/y"}]}
                ]
            },
            "",
        ),
        *(
            (
                {"extenders": [{"urlPrefix": url}]},
                f"extenders[0].urlPrefix: {invalid(url, 'must be a URL such as http://127.0.0.1:8888/scheduler')}",
            )
            for url in ("", "ftp://a", "http:///a", "http://a:0")
        ),
        ({"extenders": [{"urlPrefix": "https://a"}]}, ""),
    ],
)
def test_fields_have_bounds(fields, message):
    assert refused(fields) == message


@pytest.mark.parametrize("name", ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"])
def test_plugins_of_older_versions_are_refused(name):
    of_version = (
        f'Invalid value: "{name}": was invalid in version "v1" '
        '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
    )
    assert refused({"profiles": [{"plugins": {"filter": {"enabled": [{"name": name}]}}}]}).endswith(
        of_version
    )
    assert refused({"profiles": [{"pluginConfig": [{"name": name}]}]}).endswith(of_version)


@pytest.mark.parametrize(
    "name", ["DeferredPodScheduling", "GangScheduling", "PodGroupPodsCount", "TopologyPlacementGenerator"]
)
def test_plugins_of_pod_groups_are_refused(name):
    message = refused({"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": name}]}}}]})
    assert message.endswith(f'Invalid value: "{name}": mockube does not support it')


@pytest.mark.parametrize("point", ["placementGenerate", "placementScore", "podGroupPostFilter"])
def test_points_of_pod_groups_are_refused(point):
    message = refused({"profiles": [{"plugins": {point: {"enabled": [{"name": "A"}]}}}]})
    assert message == f"profiles[0].plugins.{point}: Forbidden: mockube does not support it"


def candidates(percentage, absolute):
    return {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}


def listed(**fields):
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **fields}
    return {"defaultingType": "List", "defaultConstraints": [constraint]}


def ratio(*points):
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {
        "scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    }


def required_field(**fields):
    own = {"key": "metadata.name", "operator": "In", "values": ["a"], **fields}
    terms = {"nodeSelectorTerms": [{"matchFields": [own]}]}
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


RATIO = "scoringStrategy.requestedToCapacityRatio"
SHAPE = f"{RATIO}.shape"
CONSTRAINT = "defaultConstraints[0]"
FIELD = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0]"


@pytest.mark.parametrize(
    ("plugin", "args", "problems"),
    [
        ("DefaultPreemption", candidates(0, 1), []),
        ("DefaultPreemption", candidates(100, 0), []),
        (
            "DefaultPreemption",
            candidates(-1, 1),
            [f"minCandidateNodesPercentage: {invalid(-1, OUT_OF_PERCENT)}"],
        ),
        (
            "DefaultPreemption",
            candidates(101, 1),
            [f"minCandidateNodesPercentage: {invalid(101, OUT_OF_PERCENT)}"],
        ),
        (
            "DefaultPreemption",
            candidates(1, -1),
            [f"minCandidateNodesAbsolute: {invalid(-1, 'not in valid range [0, inf)')}"],
        ),
        ("InterPodAffinity", {"hardPodAffinityWeight": 0}, []),
        ("InterPodAffinity", {"hardPodAffinityWeight": 100}, []),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": -1},
            [f"hardPodAffinityWeight: {invalid(-1, OUT_OF_PERCENT)}"],
        ),
        ("PodTopologySpread", listed(), []),
        ("PodTopologySpread", {"defaultingType": "System"}, []),
        (
            "PodTopologySpread",
            {"defaultingType": "Other"},
            ['defaultingType: Unsupported value: "Other": supported values: "System", "List"'],
        ),
        (
            "PodTopologySpread",
            listed(topologyKey="a b"),
            [
                f"{CONSTRAINT}.topologyKey: "
                + invalid(
                    "a b",
                    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                )
            ],
        ),
        ("PodTopologySpread", listed(topologyKey=""), [f"{CONSTRAINT}.topologyKey: {MISSING}"]),
        ("PodTopologySpread", listed(whenUnsatisfiable=""), [f"{CONSTRAINT}.whenUnsatisfiable: {MISSING}"]),
        ("PodTopologySpread", listed(whenUnsatisfiable="ScheduleAnyway"), []),
        (
            "PodTopologySpread",
            listed(labelSelector={}),
            [
                (
                    f"{CONSTRAINT}.labelSelector: Forbidden: constraint must not define a selector, "
                    "as they deduced for each pod"
                )
            ],
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": listed()["defaultConstraints"] * 2},
            ['defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"'],
        ),
        (
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    *listed()["defaultConstraints"],
                    *listed(topologyKey="rack")["defaultConstraints"],
                ],
            },
            [],
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 1}, {"name": "pods"}]},
            [],
        ),
        ("NodeResourcesFit", {"ignoredResources": ["e.x/a"], "ignoredResourceGroups": ["e.x"]}, []),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "a", "weight": 100}]}},
            [],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "a", "weight": -1}]}},
            [
                f"scoringStrategy.resources[0].weight: {invalid(-1, 'resource weight of a not in valid range (0, 100]')}"
            ],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            [f"{RATIO}: Required value: must be specified when type is RequestedToCapacityRatio"],
        ),
        ("NodeResourcesFit", ratio((0, 0), (100, 10)), []),
        ("NodeResourcesFit", ratio(), [f"{SHAPE}: Required value: at least one point must be specified"]),
        (
            "NodeResourcesFit",
            ratio((-1, -1), (101, 11)),
            [
                f"{SHAPE}[0].utilization: {invalid(-1, OUT_OF_PERCENT)}",
                f"{SHAPE}[0].score: {invalid(-1, 'not in valid range [0, 10]')}",
                f"{SHAPE}[1].utilization: {invalid(101, OUT_OF_PERCENT)}",
                f"{SHAPE}[1].score: {invalid(11, 'not in valid range [0, 10]')}",
            ],
        ),
        (
            "NodeResourcesFit",
            ratio((2, 1), (2, 1), (1, 1)),
            [f"{SHAPE}[1].utilization: {invalid(2, 'values must be sorted in increasing order')}"],
        ),
        ("NodeAffinity", {}, []),
        ("NodeAffinity", required_field(), []),
        ("NodeAffinity", required_field(operator="NotIn"), []),
        (
            "NodeAffinity",
            required_field(operator="Exists"),
            [f'{FIELD}.operator: Unsupported value: "Exists": supported values: "In", "NotIn"'],
        ),
        (
            "NodeAffinity",
            required_field(key="metadata.uid"),
            [f"{FIELD}.key: {invalid('metadata.uid', 'not a valid field selector key')}"],
        ),
        (
            "NodeAffinity",
            required_field(values=["a", "b"]),
            [f"{FIELD}.values: Required value: must have one element"],
        ),
        (
            "NodeAffinity",
            required_field(values=[]),
            [f"{FIELD}.values: Required value: must have one element"],
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}, []),
        ("VolumeBinding", {"shape": []}, []),
        (
            "VolumeBinding",
            {"shape": [{"utilization": 0, "score": 11}]},
            [f"shape[0].score: {invalid(11, 'not in valid range [0, 10]')}"],
        ),
    ],
)
def test_arguments_of_plugins_have_bounds(plugin, args, problems):
    assert refused_args(plugin, args) == problems


def test_names_of_ignored_resources_are_checked():
    problems = refused_args(
        "NodeResourcesFit", {"ignoredResources": ["a b"], "ignoredResourceGroups": ["c d"]}
    )
    assert [problem.partition(": name part must")[0] for problem in problems] == [
        'ignoredResources[0]: Invalid value: "a b"',
        'ignoredResourceGroups[0]: Invalid value: "c d"',
    ]


def test_empty_shape_of_volumes_needs_no_gate():
    off = FeatureGates(settings=[("StorageCapacityScoring", False)])
    assert refused_args("VolumeBinding", {"shape": []}, off) == []


def test_expressions_of_added_affinity_are_checked():
    term = {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}
    for affinity, place in (
        (
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
            "nodeSelectorTerms[0]",
        ),
        (
            {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]},
            "ution[0]",
        ),
    ):
        (problem,) = refused_args("NodeAffinity", {"addedAffinity": affinity})
        assert f"{place}.matchExpressions[0].values: " in problem
