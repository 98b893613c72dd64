"""Which plugins a profile has, in which order and with which weights, and which plugins cannot run together."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.component_base.configuration_files import ConfigurationError
from mockube.scheduler.config.plugin_sets import PluginError
from mockube.scheduler.plugin import SchedulerPlugin
from mockube.scheduler.profiles import DEFAULT_PROFILE
from mockube.scheduler.settings import settings_for
from tests.support.controllers.scheduler_objects import node, pod, rejections, snapshot
from tests.support.controllers.scheduler_profiles import profile_of, profiles_of
from tests.support.packs import add_metadata

FILTERS = [plugin.name for plugin in DEFAULT_PROFILE.filters]
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


class Own(SchedulerPlugin):
    weight = 4

    def __init__(self, limit=3):
        self.limit = limit

    def filter(self, _, node):
        return "too many" if len(node.pods) >= self.limit else None

    def score(self, *_):
        return 1


def names(*plugins):
    return [{"name": name} for name in plugins]


def of(**plugins):
    return profile_of({"plugins": plugins})


def weights(profile):
    return {plugin.name: plugin.weight for plugin in profile.scores}


def filters(profile):
    return [plugin.name for plugin in profile.filters]


def test_default_profile_has_upstreams_plugins():
    assert weights(DEFAULT_PROFILE) == WEIGHTS
    assert FILTERS[:2] == ["NodeName", "NodeUnschedulable"]
    assert FILTERS[-1] == "NodeDeclaredFeatures"
    assert len(FILTERS) == 14


def test_weight_of_score_counts_before_that_of_multi_point():
    profile = of(
        multiPoint={"enabled": [{"name": "ImageLocality", "weight": 5}, {"name": "NodeAffinity"}]},
        score={"enabled": [{"name": "ImageLocality", "weight": 8}]},
    )
    assert weights(profile) == WEIGHTS | {"ImageLocality": 8, "NodeAffinity": 1}


def test_negative_weight_after_greater_ones_is_accepted():
    profile = of(multiPoint={"enabled": [{"name": "ImageLocality", "weight": -1}]})
    assert weights(profile) == WEIGHTS | {"ImageLocality": -1}


def test_weight_of_a_plugin_without_score_does_not_count():
    profile = of(multiPoint={"enabled": [{"name": "NodePorts", "weight": -50}]})
    assert weights(profile) == WEIGHTS


def test_all_scores_but_one_are_disabled():
    profile = of(score={"disabled": names("*"), "enabled": [{"name": "NodeResourcesFit", "weight": 2}]})
    assert weights(profile) == {"NodeResourcesFit": 2}
    assert filters(profile) == FILTERS


def test_only_some_plugins_are_enabled():
    plugins = ("PrioritySort", "DefaultBinder", "NodeResourcesFit")
    profile = of(multiPoint={"disabled": names("*"), "enabled": names(*plugins)})
    assert (filters(profile), weights(profile)) == (["NodeResourcesFit"], {"NodeResourcesFit": 1})
    assert profile.preemption is None
    assert not profile.binds_volumes
    assert not profile.allocates_devices


def test_filters_that_are_configured_anew_come_first():
    profile = of(filter={"enabled": names("InterPodAffinity", "NodePorts")})
    rest = [name for name in FILTERS if name not in ("InterPodAffinity", "NodePorts")]
    assert filters(profile) == ["InterPodAffinity", "NodePorts", *rest]


def test_prefilter_stays_on_if_filter_is_disabled():
    """It alone may still reject all nodes, and checks none."""
    profile = of(filter={"disabled": names("NodeResourcesFit")})
    assert filters(profile)[-1] == "NodeResourcesFit"
    assert filters(profile) != FILTERS
    profile = of(multiPoint={"disabled": names("NodeResourcesFit")})
    assert "NodeResourcesFit" not in filters(profile)


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ({"score": {"enabled": names("Nope")}}, 'ScorePlugin "Nope" does not exist'),
        ({"multiPoint": {"enabled": names("Nope")}}, 'PreFilterPlugin "Nope" does not exist'),
        (
            {"filter": {"enabled": names("ImageLocality")}},
            'plugin "ImageLocality" does not extend FilterPlugin plugin',
        ),
        (
            {"score": {"enabled": names("ImageLocality", "ImageLocality")}},
            'plugin "ImageLocality" already registered as "ScorePlugin"',
        ),
        (
            {"score": {"enabled": [{"name": "ImageLocality", "weight": -1}]}},
            "score plugins: total score of Score plugins could overflow",
        ),
        (
            {"multiPoint": {"disabled": names("*")}},
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        ),
        (
            {"bind": {"disabled": names("*")}},
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        (
            {"filter": {"disabled": names("VolumeBinding")}},
            'plugin "VolumeBinding" is on at reserve and off at filter, which mockube does not support',
        ),
        (
            {"reserve": {"disabled": names("VolumeBinding")}},
            'plugin "VolumeBinding" is on at filter and off at reserve, which mockube does not support',
        ),
        (
            {"preScore": {"disabled": names("TaintToleration")}},
            'plugin "TaintToleration" is on at score and off at preScore, which mockube does not support',
        ),
        (
            {"preFilter": {"disabled": names("NodePorts")}},
            'plugin "NodePorts" is on at filter and off at preFilter, which mockube does not support',
        ),
    ],
)
def test_plugins_that_cannot_run_are_refused(plugins, message):
    """The messages are those of a kube-scheduler 1.37.2, apart from those that name mockube."""
    with pytest.raises(PluginError) as caught:
        of(**plugins)
    prefix = "initializing profiles: creating profile for scheduler name default-scheduler: "
    assert str(caught.value) == prefix + message


def args(name, **fields):
    return {"pluginConfig": [{"name": name, "args": fields}]}


REQUIRED_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
    }
}
BY_NAME_OF_NODE = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {
            "weight": 1,
            "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]},
        }
    ]
}


def spread_by_default(action):
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": action}
    return args("PodTopologySpread", defaultingType="List", defaultConstraints=[constraint])


@pytest.mark.parametrize(
    ("profile", "plugins"),
    [
        ({}, []),
        (spread_by_default("DoNotSchedule"), ["PodTopologySpread"]),
        (spread_by_default("ScheduleAnyway"), []),
        (args("NodeAffinity", addedAffinity=REQUIRED_AFFINITY), ["NodeAffinity"]),
        (args("NodeAffinity", addedAffinity=BY_NAME_OF_NODE), []),
        (args("NodeResourcesFit", ignoredResources=["e.x/a"]), ["NodeResourcesFit"]),
        (args("NodeResourcesFit", ignoredResourceGroups=["e.x"]), ["NodeResourcesFit"]),
    ],
)
def test_plugins_that_reject_for_other_reasons_than_the_pods_have_no_hints(profile, plugins):
    assert profile_of(profile).without_hints == frozenset(plugins)


def test_profile_that_prefers_a_name_of_a_node_tells_nodes_apart():
    assert profile_of(args("NodeAffinity", addedAffinity=BY_NAME_OF_NODE)).names_nodes
    assert not profile_of(args("NodeAffinity", addedAffinity=REQUIRED_AFFINITY)).names_nodes


def test_arguments_of_plugins_are_those_of_the_profile():
    profile = profile_of(args("VolumeBinding", bindTimeoutSeconds=7))
    assert (profile.bind_timeout, profile.limits_candidates) == (7, False)
    limited = profile_of(args("DefaultPreemption", minCandidateNodesAbsolute=3))
    assert (limited.bind_timeout, limited.limits_candidates) == (600, True)
    assert limited.preemption.min_candidate_nodes_absolute == 3


@pytest.mark.parametrize(
    "point",
    [
        "preFilter",
        "filter",
        "postFilter",
        "reserve",
        "preScore",
        "score",
        "preBind",
        "bind",
        "postBind",
        "permit",
        "preEnqueue",
        "queueSort",
    ],
)
def test_plugins_of_each_extension_point_must_exist(point):
    name = f"{point[0].upper()}{point[1:]}Plugin"
    with pytest.raises(PluginError, match=f': {name} "Nope" does not exist$'):
        of(**{point: {"enabled": names("Nope")}})


def test_percentage_of_profile_counts_before_that_of_all():
    profiles = profiles_of([{"percentageOfNodesToScore": 30}, {"schedulerName": "second"}])
    assert profiles["default-scheduler"].percentage_of_nodes_to_score == 30
    assert profiles["second"].percentage_of_nodes_to_score is None


# --- plugins of the user's own


def configured(tmp_path, text="", plugins=()):
    file = None
    if text:
        file = tmp_path / "scheduler.yaml"
        head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        file.write_text(head + text)
    return settings_for(file, plugins, FeatureGates())


def test_own_plugin_is_on_by_default(tmp_path):
    (profile,) = configured(tmp_path, plugins=[Own]).profiles.values()
    assert filters(profile) == [*FILTERS, "Own"]
    assert weights(profile) == WEIGHTS | {"Own": 4}


def test_profile_configures_own_plugin(tmp_path):
    text = (
        "profiles:\n"
        "- schedulerName: without\n  plugins: {multiPoint: {disabled: [{name: Own}]}}\n"
        "- schedulerName: other\n  plugins: {score: {enabled: [{name: Own, weight: 9}]}}\n"
        "  pluginConfig: [{name: Own, args: {limit: 0}}]\n"
    )
    profiles = configured(tmp_path, text, [Own]).profiles
    assert "Own" not in filters(profiles["without"])
    assert weights(profiles["other"])["Own"] == 9


@pytest.mark.parametrize(
    ("plugins", "text", "message"),
    [
        ([1], "", "1 is neither a subclass of SchedulerPlugin nor an object of one"),
        ([type("Empty", (SchedulerPlugin,), {})], "", "has neither a filter nor a score"),
        ([type("Text", (Own,), {"weight": "3"})], "", "has the weight '3', which is no int"),
        ([type("Number", (Own,), {"name": 5})], "", "has the name 5, which is no str"),
        ([Own, Own()], "", 'two plugins are named "Own"'),
        ([type("NodePorts", (Own,), {})], "", 'two plugins are named "NodePorts"'),
        (
            [Own],
            "profiles: [{pluginConfig: [{name: Own, args: {size: 1}}]}]",
            'initializing plugin "Own": TypeError',
        ),
        (
            [Own()],
            "profiles: [{pluginConfig: [{name: Own, args: {limit: 1}}]}]",
            "it is an object and not a class",
        ),
    ],
    ids=[
        "no plugin",
        "without methods",
        "text as weight",
        "number as name",
        "twice",
        "name of another",
        "unknown argument",
        "arguments of an object",
    ],
)
def test_own_plugin_that_cannot_run_is_refused(plugins, text, message, tmp_path):
    with pytest.raises(ConfigurationError, match=message):
        configured(tmp_path, text, plugins)


MODULE = """
from mockube.scheduler.plugin import SchedulerPlugin


class Installed(SchedulerPlugin):
    def score(self, pod, node):
        return 1


class Other(SchedulerPlugin):
    name = "Another"

    def score(self, pod, node):
        return 1
"""
BY_NAME = "profiles: [{plugins: {multiPoint: {enabled: [{name: %s, weight: 6}]}}}]"


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "installed_plugins.py").write_text(MODULE)
    references = {name: f"installed_plugins:{name}" for name in ("Installed", "Other", "Missing")}
    add_metadata(folder, "plugins", references, "mockube.scheduler_plugins")
    monkeypatch.syspath_prepend(folder)


@pytest.mark.usefixtures("distribution")
def test_plugin_of_entry_point_is_on_where_it_is_named(tmp_path):
    (profile,) = configured(tmp_path, BY_NAME % "Installed").profiles.values()
    assert weights(profile) == WEIGHTS | {"Installed": 6}
    assert filters(profile) == FILTERS


@pytest.mark.usefixtures("distribution")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Missing", 'plugin "Missing": installed_plugins:Missing failed: AttributeError'),
        ("Other", 'plugin "Other": installed_plugins:Other has the name "Another"'),
        ("Nothing", 'PreFilterPlugin "Nothing" does not exist'),
    ],
)
def test_entry_point_that_is_no_plugin_is_refused(name, message, tmp_path):
    with pytest.raises(ConfigurationError, match=message):
        configured(tmp_path, BY_NAME % name)


@pytest.mark.usefixtures("distribution")
def test_entry_point_of_a_plugin_that_is_known_is_not_loaded(tmp_path):
    own = type("Missing", (Own,), {})
    (profile,) = configured(tmp_path, BY_NAME % "Missing", [own]).profiles.values()
    assert weights(profile) == WEIGHTS | {"Missing": 6}
    (profile,) = configured(tmp_path, BY_NAME % "NodeAffinity").profiles.values()
    assert weights(profile) == WEIGHTS | {"NodeAffinity": 6}


@pytest.mark.usefixtures("distribution")
def test_two_entry_points_of_one_name_are_refused(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    add_metadata(other, "more", {"Installed": "installed_plugins:Installed"}, "mockube.scheduler_plugins")
    monkeypatch.syspath_prepend(other)
    message = 'two entry points of mockube.scheduler_plugins are named "Installed"'
    with pytest.raises(ConfigurationError, match=message):
        configured(tmp_path, BY_NAME % "Installed")


def extender(**resource):
    return f"extenders: [{{urlPrefix: 'http://a', managedResources: [{resource}]}}]\n"


def test_filter_ignores_what_extenders_manage(tmp_path):
    """As upstream, instead of what its arguments say."""
    seen = extender(name="e.x/seen")
    ignored = extender(name="e.x/gpu", ignoredByScheduler=True).replace("True", "true")
    own = "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [e.x/own]}}]}]"

    def fits(text, **requests):
        (profile,) = configured(tmp_path, text).profiles.values()
        (fit,) = (plugin.filter for plugin in profile.filters if plugin.name == "NodeResourcesFit")
        return not rejections(fit, pod(requests={f"e.x/{name}": 1 for name in requests}), snapshot([node()]))

    assert [fits(seen + own, **{name: 1}) for name in ("own", "seen", "gpu")] == [True, False, False]
    assert [fits(ignored + own, **{name: 1}) for name in ("own", "gpu")] == [False, True]
    assert fits(ignored, gpu=1)


def test_all_nodes_are_looked_at_without_extenders_only(tmp_path):
    def percentage(text):
        (profile,) = configured(tmp_path, text).profiles.values()
        return profile.percentage_of_nodes_to_score

    of_extender = extender(name="e.x/gpu")
    found = [
        percentage(text)
        for text in ("parallelism: 4", of_extender, of_extender + "percentageOfNodesToScore: 9")
    ]
    assert found == [None, 0, 9]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "clientConnection: {qps: 5}",
            "clientConnection has no effect: the controller manager has --kubeconfig",
        ),
        ("enableProfiling: true", "enableProfiling has no effect: there is no profiling"),
        ("enableContentionProfiling: true", "enableContentionProfiling has no effect: there is no profiling"),
        (
            "delayCacheUntilActive: true",
            "delayCacheUntilActive has no effect: the caches start with the leader",
        ),
        ("parallelism: 16", ""),
    ],
)
def test_field_without_effect_causes_a_warning(text, reason, tmp_path):
    assert configured(tmp_path, text).warnings == ((reason,) if reason else ())


def test_only_timeouts_of_devices_cause_a_warning(tmp_path):
    rows = "[{name: DynamicResources, args: {bindingTimeout: 5s}}, {name: NodeAffinity, args: {}}]"
    warning = "profiles[0].pluginConfig[0]: DynamicResources has no timeouts"
    assert configured(tmp_path, f"profiles: [{{pluginConfig: {rows}}}]").warnings == (warning,)


def test_fields_without_effect_cause_warnings(tmp_path):
    text = (
        "parallelism: 4\nleaderElection: {leaderElect: false}\n"
        "profiles:\n"
        "- schedulerName: first\n  plugins: {preEnqueue: {disabled: [{name: SchedulingGates}]}}\n"
        "  pluginConfig: [{name: DynamicResources, args: {filterTimeout: 5s}}]\n"
        "- schedulerName: second\n  pluginConfig: [{name: DynamicResources, args: {}}]\n"
    )
    assert configured(tmp_path, text).warnings == (
        "profiles[0].plugins: SchedulingGates cannot be disabled: pods with scheduling gates still wait",
        "parallelism has no effect: nodes are checked one after the other",
        "leaderElection has no effect: the controller manager has --leader-elect",
        "profiles[0].pluginConfig[0]: DynamicResources has no timeouts",
    )
