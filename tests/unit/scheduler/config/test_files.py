"""What is refused in a KubeSchedulerConfiguration. The messages are those of a kube-scheduler 1.37.2, apart from those that name mockube."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.component_base.configuration_files import ConfigurationError
from mockube.scheduler.config.files import read_configuration

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ARGS = "decoding .profiles[0].pluginConfig[0]: decoding args for plugin"
URL = 'urlPrefix: "http://127.0.0.1:80"'
BOUND = "{key: a, operator: Gt, values: [x]}"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PLACE = "profiles[0].pluginConfig[0].args"


def args(plugin, text):
    return f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {text}}}]}}]"


REFUSED = {
    "no YAML": ("apiVersion: [", "error converting YAML to JSON"),
    "nothing": ("", "the file is not an object"),
    "no apiVersion": ("kind: KubeSchedulerConfiguration", "Object 'apiVersion' is missing"),
    "no kind": ("apiVersion: kubescheduler.config.k8s.io/v1", "Object 'Kind' is missing"),
    "other version": (
        HEAD.replace("/v1", "/v1beta3"),
        'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3"',
    ),
    "unknown fields": (
        f"{HEAD}foo: 1\nprofiles: [{{bar: 2}}]",
        'strict decoding error: unknown field "foo", unknown field "profiles[0].bar"',
    ),
    "duplicate field": (f"{HEAD}kind: KubeSchedulerConfiguration", "strict decoding error: "),
    "wrong type": (
        f"{HEAD}podInitialBackoffSeconds: x",
        "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.podInitialBackoffSeconds of type int",
    ),
    "unknown field of arguments": (
        HEAD + args("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, baz: 1}}"),
        f'{ARGS} NodeResourcesFit: strict decoding error: unknown field "scoringStrategy.baz"',
    ),
    "arguments of another plugin": (
        HEAD + args("NodeAffinity", "{apiVersion: kubescheduler.config.k8s.io/v1, kind: FooArgs}"),
        f'{ARGS} NodeAffinity: no kind "FooArgs" is registered for version "kubescheduler.config.k8s.io/v1"',
    ),
    "no arguments": (
        HEAD + args("NodeAffinity", "[1]"),
        f"{ARGS} NodeAffinity: the arguments are no object, but [1]",
    ),
    "numbers": (
        f"{HEAD}parallelism: 0\npodInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1\npercentageOfNodesToScore: 101",
        (
            "[parallelism: Invalid value: 0: should be an integer value greater than zero, "
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100], "
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0, "
            "podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds]"
        ),
    ),
    "names of profiles": (
        f"{HEAD}profiles: [{{schedulerName: a}}, {{schedulerName: a}}, {{}}]",
        '[profiles[1].schedulerName: Duplicate value: "a", profiles[2].schedulerName: Required value]',
    ),
    "two arguments": (
        f"{HEAD}profiles: [{{pluginConfig: [{{name: A}}, {{name: A}}]}}]",
        'profiles[0].pluginConfig[1]: Duplicate value: "A"',
    ),
    "weights and resources of extenders": (
        f"{HEAD}extenders: [{{{URL}, prioritizeVerb: p}}, {{{URL}, managedResources: [{{name: cpu}}, {{name: a b}}]}}]",
        (
            "[extenders[0].weight: Invalid value: 0: must have a positive weight applied to it, "
            'extenders[1].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name, '
            'extenders[1].managedResources[1].name: Invalid value: "a b": name part must consist of '
        ),
    ),
    "resource of two extenders": (
        f"{HEAD}extenders: [{{{URL}, managedResources: [{{name: e.com/x}}]}}, {{{URL}, managedResources: [{{name: e.com/x}}]}}]",
        'extenders[1].managedResources[0].name: Invalid value: "e.com/x": duplicate extender managed resource name',
    ),
    "two extenders that bind": (
        f"{HEAD}extenders: [{{{URL}, bindVerb: b}}, {{{URL}, bindVerb: b}}]",
        'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
    ),
    "unknown field of an extender": (
        f"{HEAD}extenders: [{{{URL}, url: x, tlsConfig: {{foo: 1}}}}]",
        'strict decoding error: unknown field "extenders[0].tlsConfig.foo", unknown field "extenders[0].url"',
    ),
    "unit of a timeout": (
        f"{HEAD}extenders: [{{{URL}, httpTimeout: 5x}}]",
        'time: unknown unit "x" in duration "5x"',
    ),
    "type of a timeout": (
        f"{HEAD}extenders: [{{{URL}, httpTimeout: 5}}]",
        "json: cannot unmarshal number into Go struct field Extender.extenders.httpTimeout of type string",
    ),
    "timeout that mockube refuses": (
        f"{HEAD}extenders: [{{{URL}, httpTimeout: -1s}}]",
        'extenders[0].httpTimeout: Invalid value: "-1s": must be greater than or equal to 0',
    ),
    "URL that mockube refuses": (
        f"{HEAD}extenders: [{{urlPrefix: 127.0.0.1:80}}]",
        'extenders[0].urlPrefix: Invalid value: "127.0.0.1:80": must be a URL such as http://127.0.0.1:8888/scheduler',
    ),
    "port that is no number": (
        f'{HEAD}extenders: [{{urlPrefix: "http://a:b"}}]',
        'extenders[0].urlPrefix: Invalid value: "http://a:b": must be a URL',
    ),
    "points of pod groups": (
        f"{HEAD}profiles: [{{plugins: {{placementScore: {{enabled: [{{name: A}}]}}}}}}]",
        "profiles[0].plugins.placementScore: Forbidden: mockube does not support it",
    ),
    "plugin of pod groups": (
        f"{HEAD}profiles: [{{plugins: {{permit: {{enabled: [{{name: GangScheduling}}]}}}}}}]",
        'profiles[0].plugins.permit.enabled[0]: Invalid value: "GangScheduling": mockube does not support it',
    ),
    "removed plugin": (
        f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: EBSLimits}}]}}}}}}]",
        (
            'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
            '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
        ),
    ),
    "weight that is too large": (
        HEAD + "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 2147483648}]}}}]",
        "json: cannot unmarshal number into Go struct field Plugin.profiles.plugins.score.enabled.weight of type int",
    ),
    "bound that is no integer": (
        HEAD
        + args(
            "NodeAffinity",
            f"{{addedAffinity: {{{PREFERRED}: [{{preference: {{matchExpressions: [{BOUND}]}}}}]}}}}",
        ),
        (
            f"{PLACE}.addedAffinity.{PREFERRED}[0].matchExpressions[0].values[0]: "
            """Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"""
        ),
    ),
    "weight of affinity": (
        HEAD + args("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
        f"{PLACE}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
    ),
    "no candidates": (
        HEAD + args("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}"),
        (
            f"[{PLACE}.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute, "
            f"{PLACE}.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage]"
        ),
    ),
    "constraints": (
        HEAD
        + args(
            "PodTopologySpread",
            '{defaultConstraints: [{topologyKey: "", maxSkew: 0, whenUnsatisfiable: Foo}]}',
        ),
        (
            f'[{PLACE}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty, '
            f"{PLACE}.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf), "
            f"{PLACE}.defaultConstraints[0].topologyKey: Required value: can not be empty, "
            f'{PLACE}.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Foo": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"]'
        ),
    ),
    "constraint without action": (
        HEAD
        + args(
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{topologyKey: zone, maxSkew: 1}]}",
        ),
        f"{PLACE}.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
    ),
    "resources": (
        HEAD + args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}, {name: cpu}]}"),
        (
            f"[{PLACE}.resources[0].weight: Invalid value: 2: must be 1, "
            f'{PLACE}.resources[1].name: Duplicate value: "cpu"]'
        ),
    ),
    "strategy": (
        HEAD
        + args("NodeResourcesFit", "{scoringStrategy: {type: Foo, resources: [{name: cpu, weight: 200}]}}"),
        (
            f'[{PLACE}.scoringStrategy.type: Unsupported value: "Foo": '
            'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio", '
            f"{PLACE}.scoringStrategy.resources[0].weight: Invalid value: 200: "
            "resource weight of cpu not in valid range (0, 100]]"
        ),
    ),
    "shape": (
        HEAD
        + args(
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "
            "{shape: [{utilization: 5, score: 11}, {utilization: 4}]}}}",
        ),
        (
            f"[{PLACE}.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 4: "
            "values must be sorted in increasing order, "
            f"{PLACE}.scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: "
            "not in valid range [0, 10]]"
        ),
    ),
    "shape of another strategy": (
        HEAD
        + args("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}}"),
        f"{PLACE}.scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio",
    ),
    "ignored group": (
        HEAD + args("NodeResourcesFit", "{ignoredResourceGroups: [a/b]}"),
        f"{PLACE}.ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'",
    ),
    "operator": (
        HEAD
        + args(
            "NodeAffinity",
            "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Inn, values: [b]}]}]}}}",
        ),
        (
            f"{PLACE}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
            '.matchExpressions[0].operator: Unsupported value: "Inn": '
            'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
        ),
    ),
    "timeout": (
        HEAD + args("VolumeBinding", "{bindTimeoutSeconds: -1}"),
        f"{PLACE}.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_invalid_configuration_is_refused(text, message, tmp_path):
    file = tmp_path / "scheduler.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(file, FeatureGates())
    assert str(caught.value).startswith(message)


def test_shape_of_volumes_needs_its_gate(tmp_path):
    file = tmp_path / "scheduler.yaml"
    file.write_text(HEAD + args("VolumeBinding", "{shape: [{utilization: 0, score: 1}]}"))
    read_configuration(file, FeatureGates())
    with pytest.raises(ConfigurationError, match="turn on the feature gate StorageCapacityScoring"):
        read_configuration(file, FeatureGates(settings=[("StorageCapacityScoring", False)]))


def test_missing_file_is_refused(tmp_path):
    file = tmp_path / "none.yaml"
    with pytest.raises(ConfigurationError, match="No such file or directory"):
        read_configuration(file, FeatureGates())


def test_fields_have_upstreams_defaults(tmp_path):
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        HEAD + args("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}")
    )
    configuration = read_configuration(file, FeatureGates())
    (profile,) = configuration.profiles
    assert profile.scheduler_name == "default-scheduler"
    (resource,) = profile.plugin_config[0].args.scoring_strategy.resources
    assert (resource.name, resource.weight) == ("cpu", 1)
    assert (configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds) == (1, 10)
    assert configuration.percentage_of_nodes_to_score is None
