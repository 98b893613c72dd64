"""The events by which a pod is tried again that a plugin rejected."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.podview import PodView
from mockube.scheduler.requeueing import (
    ANYTHING,
    Action,
    ClusterEvent,
    event_of,
    is_worth_requeuing,
    node_actions,
    pod_actions,
)

TAINT = {"key": "dedicated", "effect": "NoSchedule"}


def node(*, cpu="1", labels=(), features=(), **spec):
    status = {"allocatable": {"cpu": cpu, "pods": "9"}, "declaredFeatures": list(features)}
    return {"metadata": {"name": "a", "labels": dict(labels)}, "spec": spec, "status": status}


def view(name="web", *, cpu="2", labels=(), port=None, **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    container |= {"ports": [{"hostPort": port}]} if port else {}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "resourceVersion": "1",
        "labels": dict(labels),
    }
    return PodView.of({"metadata": metadata, "spec": {"containers": [container], **spec}, "status": {}})


def term(**labels):
    selected = {"labelSelector": {"matchLabels": labels}, "topologyKey": "zone"}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [selected]}


def spread(**labels):
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return [{**constraint, "labelSelector": {"matchLabels": labels}}]


def node_event(old, new):
    return ClusterEvent("Node", node_actions(old, new), old, new)


def pod_event(old, new):
    return ClusterEvent("Pod", pod_actions(old, new), old, new)


def with_actual(cpu):
    resized = view("other", cpu="1").object
    status = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return PodView.of({**resized, "status": {"containerStatuses": [status]}})


SSD = {"nodeSelector": {"disk": "ssd"}}
WEB = view("other", labels={"app": "web"})


@pytest.mark.parametrize(
    ("plugin", "pod", "event", "is_worth"),
    [
        ("NodeResourcesFit", view(), node_event(None, node(cpu="2")), True),
        ("NodeResourcesFit", view(), node_event(None, node(cpu="1")), False),
        ("NodeResourcesFit", view(), node_event(node(cpu="1"), node(cpu="2")), True),
        ("NodeResourcesFit", view(), node_event(node(cpu="3"), node(cpu="2")), False),
        ("NodeResourcesFit", view(), node_event(node(cpu="2"), node(cpu="2", labels={"a": "b"})), False),
        ("NodeResourcesFit", view(), pod_event(WEB, None), True),
        ("NodeResourcesFit", view(), pod_event(None, WEB), False),
        ("NodeResourcesFit", view(), pod_event(view(cpu="3"), view(cpu="1")), True),
        ("NodeResourcesFit", view(), pod_event(view(cpu="1"), view(cpu="3")), False),
        ("NodeResourcesFit", view(), pod_event(with_actual("3"), with_actual("1")), True),
        ("NodeResourcesFit", view(), pod_event(with_actual("1"), with_actual("3")), False),
        ("NodeAffinity", view(**SSD), node_event(node(), node(labels={"disk": "ssd"})), True),
        ("NodeAffinity", view(**SSD), node_event(node(), node(labels={"disk": "hdd"})), False),
        ("TaintToleration", view(), node_event(node(taints=[TAINT]), node()), True),
        ("TaintToleration", view(), node_event(None, node(taints=[TAINT])), False),
        ("NodeUnschedulable", view(), node_event(node(unschedulable=True), node()), True),
        ("NodeUnschedulable", view(), node_event(node(), node(unschedulable=True)), False),
        ("NodePorts", view(port=80), pod_event(view(port=80), None), True),
        ("NodePorts", view(port=80), pod_event(view(port=81), None), False),
        ("InterPodAffinity", view(affinity={"podAffinity": term(app="web")}), pod_event(None, WEB), True),
        ("InterPodAffinity", view(affinity={"podAffinity": term(app="db")}), pod_event(None, WEB), False),
        ("InterPodAffinity", view(affinity={"podAntiAffinity": term(app="web")}), pod_event(WEB, None), True),
        ("InterPodAffinity", view(affinity={"podAntiAffinity": term(app="db")}), pod_event(WEB, None), False),
        ("PodTopologySpread", view(topologySpreadConstraints=spread(app="web")), pod_event(None, WEB), True),
        ("PodTopologySpread", view(topologySpreadConstraints=spread(app="db")), pod_event(None, WEB), False),
        ("PodTopologySpread", view(topologySpreadConstraints=spread()), node_event(None, node()), False),
        ("NodeDeclaredFeatures", view(), node_event(node(), node(features=["A"])), True),
        ("NodeDeclaredFeatures", view(), node_event(node(), node(labels={"a": "b"})), False),
        ("VolumeBinding", view(), ClusterEvent("CSIStorageCapacity", Action.ADD), True),
        ("NodeResourcesFit", view(), ClusterEvent("CSIStorageCapacity", Action.ADD), False),
        ("NodeResourcesFit", view(), ANYTHING, True),
    ],
)
def test_pod_is_tried_again_by_events_that_may_help(plugin, pod, event, is_worth):
    assert is_worth_requeuing(pod, {plugin}, event, FeatureGates()) is is_worth


def resizing(**actual):
    """Return a pod of which one container grows from 1 to 4 CPUs while the other one shrinks from 3 to 1."""
    containers = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in (("a", "1"), ("b", "4"))
    ]
    statuses = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}
        for name, cpu in actual.items()
    ]
    resized = {**WEB.object, "spec": {"containers": containers}, "status": {"containerStatuses": statuses}}
    return PodView.of(resized)


@pytest.mark.parametrize(("minor", "is_worth"), [("1.37", False), ("1.36", True)])
def test_resize_frees_requests_that_minor_counts(minor, is_worth):
    event = pod_event(resizing(a="3", b="1"), resizing(a="1", b="4"))
    assert is_worth_requeuing(view(), {"NodeResourcesFit"}, event, FeatureGates(minor)) is is_worth


def test_requests_are_not_computed_for_plugin_that_any_event_may_help():
    without_spec = PodView.of({"metadata": view().object["metadata"]})
    plugins = {"NodeAffinity", "VolumeBinding"}
    assert is_worth_requeuing(without_spec, plugins, node_event(None, node()), FeatureGates())
    assert not is_worth_requeuing(
        without_spec, {"NodeAffinity"}, ClusterEvent("CSINode", Action.ADD), FeatureGates()
    )


@pytest.mark.parametrize(("plugins", "is_worth"), [((), False), (("NodeResourcesFit",), True)])
def test_any_event_of_plugin_without_hints_may_help(plugins, is_worth):
    """A pod that needs more than the node has may fit nevertheless, if the plugin ignores the resource."""
    tried = PodView.of(
        {**view().object, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}]}}
    )
    event = node_event(node(cpu="1"), node(cpu="2"))
    assert is_worth_requeuing(tried, {"NodeResourcesFit"}, event, FeatureGates(), plugins) is is_worth
    beyond = ClusterEvent("Service", Action.ADD)
    assert not is_worth_requeuing(tried, {"NodeResourcesFit"}, beyond, FeatureGates(), plugins)


def test_heartbeat_of_node_is_no_event():
    beat = node()
    beat["status"]["conditions"] = [{"type": "Ready", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]
    assert not node_actions(node(), beat)


def in_domain(*, labels=(), **spec):
    return node(labels={"zone": "x", "rack": "1", **dict(labels)}, **spec)


SPREAD = [*spread(app="web"), {**spread(app="web")[0], "topologyKey": "rack"}]
PREFERRED = [{**one, "whenUnsatisfiable": "ScheduleAnyway"} for one in SPREAD]


@pytest.mark.parametrize(
    ("old", "new", "is_worth"),
    [
        pytest.param(None, in_domain(), True, id="a node of a domain"),
        pytest.param(None, node(labels={"zone": "x"}), False, id="a node without all labels"),
        pytest.param(in_domain(), None, True, id="a node of a domain that is gone"),
        pytest.param(node(labels={"zone": "x"}), None, False, id="a node without all labels that is gone"),
        pytest.param(in_domain(), in_domain(labels={"zone": "y"}), True, id="another domain"),
        pytest.param(node(labels={"zone": "x"}), in_domain(), True, id="all labels"),
        pytest.param(in_domain(), node(labels={"zone": "x"}), True, id="a label less"),
        pytest.param(in_domain(), in_domain(labels={"os": "linux"}), False, id="another label"),
        pytest.param(
            node(labels={"zone": "x"}),
            node(labels={"zone": "y"}),
            False,
            id="another label of a node without all",
        ),
        pytest.param(in_domain(), in_domain(taints=[TAINT]), True, id="a taint"),
        pytest.param(in_domain(taints=[]), in_domain(unschedulable=True), False, id="unschedulable"),
        pytest.param(node(), node(taints=[TAINT]), False, id="a taint of a node without labels"),
    ],
)
def test_spread_pod_is_tried_again_if_the_domains_change(old, new, is_worth):
    tried, event = view(topologySpreadConstraints=SPREAD), node_event(old, new)
    assert is_worth_requeuing(tried, {"PodTopologySpread"}, event, FeatureGates()) is is_worth


def test_constraints_that_only_score_have_no_domains():
    tried = view(topologySpreadConstraints=[*spread(app="web"), PREFERRED[1]])
    event = node_event(None, node(labels={"zone": "x"}))
    assert is_worth_requeuing(tried, {"PodTopologySpread"}, event, FeatureGates())


NEAR, APART = {"podAffinity": term(app="web")}, {"podAntiAffinity": term(app="web")}


def in_zone(zone=None):
    return node(labels={} if zone is None else {"zone": zone})


@pytest.mark.parametrize(
    ("affinity", "old", "new", "is_worth"),
    [
        pytest.param(NEAR, None, in_zone("x"), True, id="a node of a domain"),
        pytest.param(NEAR, None, in_zone(), False, id="a node of no domain"),
        pytest.param(NEAR, in_zone(), in_zone("x"), True, id="into a domain"),
        pytest.param(NEAR, in_zone("y"), in_zone("x"), True, id="to another domain"),
        pytest.param(NEAR, in_zone("x"), in_zone(), False, id="out of a domain"),
        pytest.param(
            NEAR, in_zone("x"), node(labels={"zone": "x", "os": "linux"}), False, id="with another label"
        ),
        pytest.param(APART, None, in_zone("x"), True, id="apart: a node of a domain"),
        pytest.param(APART, None, in_zone(), True, id="apart: a node of no domain"),
        pytest.param(APART, in_zone(), in_zone("x"), False, id="apart: into a domain"),
        pytest.param(APART, in_zone("y"), in_zone("x"), True, id="apart: to another domain"),
        pytest.param(APART, in_zone("x"), in_zone(), True, id="apart: out of a domain"),
        pytest.param({}, None, in_zone("x"), False, id="without terms"),
    ],
)
def test_pod_is_tried_again_if_node_changes_domain_of_its_affinity(affinity, old, new, is_worth):
    event = node_event(old, new)
    assert (
        is_worth_requeuing(view(affinity=affinity), {"InterPodAffinity"}, event, FeatureGates()) is is_worth
    )


DB = view("other", labels={"app": "db"})
HOSTILE = view("other", affinity=APART)


@pytest.mark.parametrize(
    ("affinity", "old", "new", "is_worth"),
    [
        pytest.param(NEAR, DB, WEB, True, id="matches now"),
        pytest.param(NEAR, WEB, DB, False, id="matches no more"),
        pytest.param(
            NEAR, WEB, view("other", labels={"app": "web", "n": "1"}), False, id="matches as before"
        ),
        pytest.param(NEAR, WEB, None, False, id="that matched is gone"),
        pytest.param(APART, WEB, DB, True, id="apart: matches no more"),
        pytest.param(APART, DB, WEB, False, id="apart: matches now"),
        pytest.param(
            APART, WEB, view("other", labels={"app": "web", "n": "1"}), False, id="apart: as before"
        ),
        pytest.param(APART, None, WEB, False, id="apart: a new one that matches"),
        pytest.param({}, HOSTILE, None, True, id="that excluded the pod is gone"),
        pytest.param(
            {},
            HOSTILE,
            view("other", affinity=APART, labels={"n": "1"}),
            False,
            id="that excludes the pod still",
        ),
        pytest.param({}, WEB, None, False, id="without terms is gone"),
        pytest.param(
            {
                "podAffinity": {
                    key: [*rule, *term(tier="front")[key]] for key, rule in term(app="web").items()
                }
            },
            None,
            WEB,
            False,
            id="matches one of two terms",
        ),
    ],
)
def test_pod_is_tried_again_if_pod_changes_that_affinity_matches(affinity, old, new, is_worth):
    tried, event = view(labels={"app": "web"}, affinity=affinity), pod_event(old, new)
    assert is_worth_requeuing(tried, {"InterPodAffinity"}, event, FeatureGates()) is is_worth


def elsewhere(namespace, **fields):
    other = view("other", labels={"app": "web"}).object
    return PodView.of({**other, "metadata": {**other["metadata"], "namespace": namespace}, **fields})


@pytest.mark.parametrize(
    ("fields", "is_worth"),
    [
        ({}, False),
        ({"namespaces": ["blue"]}, True),
        ({"namespaceSelector": {"matchLabels": {"n": "1"}}}, True),
    ],
)
def test_term_may_match_pods_of_its_namespaces(fields, is_worth):
    """The labels of the namespace are not read: any that a selector may select counts."""
    near = {"podAffinity": {key: [rule[0] | fields] for key, rule in term(app="web").items()}}
    event = pod_event(None, elsewhere("blue"))
    assert is_worth_requeuing(view(affinity=near), {"InterPodAffinity"}, event, FeatureGates()) is is_worth
    spread_event = pod_event(None, elsewhere("blue"))
    tried = view(topologySpreadConstraints=spread(app="web"))
    assert not is_worth_requeuing(tried, {"PodTopologySpread"}, spread_event, FeatureGates())


@pytest.mark.parametrize(
    ("old", "new", "is_worth"),
    [
        (WEB, None, True),
        (DB, None, False),
        (DB, WEB, True),
        (WEB, DB, True),
        (WEB, view("other", labels={"app": "web", "n": "1"}), False),
    ],
)
def test_spread_pod_is_tried_again_if_the_number_of_pods_that_count_changes(old, new, is_worth):
    tried = view(topologySpreadConstraints=spread(app="web"))
    assert is_worth_requeuing(tried, {"PodTopologySpread"}, pod_event(old, new), FeatureGates()) is is_worth


def gpus(count):
    tree = node(cpu="4")
    tree["status"]["allocatable"] |= {"gpu": count} if count else {}
    return tree


def of_gpu(name="web", **requests):
    return PodView.of(
        {
            **view(name).object,
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"gpu": "1"} | requests}}]},
        }
    )


@pytest.mark.parametrize(
    ("old", "new", "by_devices", "is_worth"),
    [
        pytest.param(gpus(None), gpus("1"), (), True, id="more of it"),
        pytest.param(gpus("2"), gpus("2"), (), False, id="as much of it"),
        pytest.param(
            gpus("1"),
            {**gpus("1"), "status": {"allocatable": {"gpu": "1", "pods": "99"}}},
            (),
            True,
            id="more pods",
        ),
        pytest.param(
            gpus("1"),
            {**gpus("1"), "status": {"allocatable": {"gpu": "1", "pods": "9", "x": "1"}}},
            (),
            False,
            id="more of others",
        ),
        pytest.param(None, gpus(None), ("gpu",), True, id="a new node where devices provide it"),
        pytest.param(gpus("2"), gpus(None), ("gpu",), True, id="devices provide it now"),
        pytest.param(None, gpus(None), ("other",), False, id="devices provide others"),
        pytest.param(
            None, {**gpus("1"), "status": {"allocatable": {"gpu": "1"}}}, (), False, id="no pods allowed"
        ),
        pytest.param(None, {**gpus("1"), "status": {}}, (), False, id="nothing known of the node"),
    ],
)
def test_pod_is_tried_again_if_node_has_room_for_it(old, new, by_devices, is_worth):
    event = node_event(old, new)._replace(action=Action.ALLOCATABLE, by_devices=by_devices)
    assert is_worth_requeuing(of_gpu(), {"NodeResourcesFit"}, event, FeatureGates()) is is_worth


def test_pod_is_tried_again_if_requests_shrink_of_a_resource_that_it_needs():
    event = pod_event(of_gpu("other", gpu="2"), of_gpu("other"))
    for tried, is_worth in ((of_gpu(), True), (view(), False)):
        assert is_worth_requeuing(tried, {"NodeResourcesFit"}, event, FeatureGates()) is is_worth


def device_class(resource=None, name="class"):
    return {"metadata": {"name": name}, "spec": {"extendedResourceName": resource} if resource else {}}


@pytest.mark.parametrize(
    ("old", "new", "is_worth"),
    [
        pytest.param(None, device_class("gpu"), True, id="a class of the resource"),
        pytest.param(None, device_class("other"), False, id="a class of another one"),
        pytest.param(None, device_class(), False, id="a class of none"),
        pytest.param(None, device_class(name="mine"), True, id="a class that the pod names"),
        pytest.param(device_class(), device_class("gpu"), True, id="of the resource now"),
        pytest.param(device_class("gpu"), device_class("gpu"), False, id="of the resource as before"),
        pytest.param(device_class("gpu"), device_class("other"), False, id="of another one now"),
        pytest.param(
            device_class("other", "mine"), device_class("else", "mine"), False, id="named as before"
        ),
    ],
)
def test_pod_is_tried_again_if_device_class_provides_its_resource(old, new, is_worth):
    tried = of_gpu(**{"deviceclass.resource.kubernetes.io/mine": "1"})
    event = event_of("DeviceClass", old, new)
    assert is_worth_requeuing(tried, {"NodeResourcesFit"}, event, FeatureGates()) is is_worth


def with_volumes(*names, name="web"):
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in names]
    return view(name, volumes=volumes)


def claim(name="data", namespace="default", **metadata):
    return {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": {}}


OWNER = {"kind": "Pod", "name": "web", "uid": "web", "controller": True}


@pytest.mark.parametrize(
    ("old", "new", "is_worth"),
    [
        pytest.param(None, claim(), True, id="new"),
        pytest.param(claim(), claim(resourceVersion="2"), True, id="changed"),
        pytest.param(claim(), None, False, id="deleted"),
        pytest.param(None, claim("other"), False, id="of others"),
        pytest.param(None, claim(namespace="other"), False, id="in another namespace"),
        pytest.param(None, claim("web-scratch", ownerReferences=[OWNER]), True, id="of an ephemeral volume"),
        pytest.param(None, claim("x", ownerReferences=[OWNER | {"uid": "u"}]), False, id="of another pod"),
    ],
)
def test_pod_is_tried_again_by_changes_of_its_claims(old, new, is_worth):
    event = event_of("PersistentVolumeClaim", old, new)
    assert is_worth_requeuing(with_volumes("data"), {"VolumeBinding"}, event, FeatureGates()) is is_worth


@pytest.mark.parametrize(
    ("pod", "other", "is_worth"),
    [
        (with_volumes("data"), with_volumes("x", name="other"), True),
        (view(), with_volumes("x"), False),
        (with_volumes("data"), WEB, False),
    ],
)
def test_pod_with_volumes_is_tried_again_if_a_pod_with_volumes_is_gone(pod, other, is_worth):
    for plugin in ("VolumeRestrictions", "NodeVolumeLimits"):
        assert is_worth_requeuing(pod, {plugin}, pod_event(other, None), FeatureGates()) is is_worth


OBJECT = {"metadata": {"name": "x"}}
KINDS = (
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
    "ResourceClaim",
    "ResourceSlice",
)
EVENTS = {
    "node": node_event(None, in_zone("x")),
    "labels": node_event(node(labels={"disk": "hdd"}), node(labels={"disk": "ssd"})),
    "taints": node_event(node(taints=[TAINT], unschedulable=True), node()),
    "allocatable": node_event(node(cpu="1"), node(cpu="9")),
    "features": node_event(node(), node(features=["A"])),
    "node gone": node_event(in_zone("x"), None),
    **{
        f"{kind} {change}": event_of(kind, old, new)
        for kind in KINDS
        for change, old, new in (("new", None, OBJECT), ("changed", OBJECT, OBJECT), ("gone", OBJECT, None))
    },
}
STORAGE = {
    f"{kind} {change}" for kind in ("PersistentVolume", "StorageClass") for change in ("new", "changed")
}


@pytest.mark.parametrize(
    ("plugin", "names"),
    [
        ("NodeUnschedulable", {"node", "taints"}),
        ("TaintToleration", {"node", "taints"}),
        ("NodeAffinity", {"labels"}),
        ("NodePorts", {"node"}),
        ("NodeResourcesFit", {"allocatable"}),
        ("VolumeRestrictions", {"node"}),
        (
            "NodeVolumeLimits",
            {"CSINode new", "CSINode changed", "CSIDriver new", "CSIDriver changed", "VolumeAttachment gone"},
        ),
        (
            "VolumeBinding",
            {
                "node",
                "labels",
                *STORAGE,
                "CSINode new",
                "CSINode changed",
                "CSIDriver changed",
                "CSIStorageCapacity new",
                "CSIStorageCapacity changed",
            },
        ),
        ("VolumeZone", {"node", "labels", *STORAGE}),
        ("PodTopologySpread", {"node", "node gone"}),
        ("InterPodAffinity", {"node"}),
        (
            "DynamicResources",
            {
                "node",
                "labels",
                "allocatable",
                "ResourceClaim new",
                "ResourceClaim changed",
                "ResourceClaim gone",
                "ResourceSlice new",
                "ResourceSlice changed",
            },
        ),
        ("NodeDeclaredFeatures", {"node", "features"}),
        ("Unknown", {*EVENTS}),
    ],
)
def test_each_plugin_has_the_events_that_it_registers(plugin, names):
    """As upstream's EventsToRegister; a plugin that is not known may be helped by anything."""
    tried = view(topologySpreadConstraints=spread(app="web"), affinity=NEAR, **SSD)
    found = {
        name for name, event in EVENTS.items() if is_worth_requeuing(tried, {plugin}, event, FeatureGates())
    }
    assert found == names


def test_one_of_several_plugins_suffices():
    event = node_event(node(taints=[TAINT]), node())
    assert is_worth_requeuing(view(**SSD), {"NodeAffinity", "TaintToleration"}, event, FeatureGates())
    assert is_worth_requeuing(view(**SSD), set(), event, FeatureGates())
    assert not is_worth_requeuing(view(**SSD), {"NodeAffinity", "NodePorts"}, event, FeatureGates())


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (None, node(), Action.ADD),
        (node(), None, Action.DELETE),
        (node(), node(), Action(0)),
        (node(), node(labels={"a": "b"}), Action.LABELS),
        (node(), node(taints=[TAINT]), Action.TAINTS),
        (node(), node(unschedulable=True), Action.TAINTS),
        (node(), node(cpu="2"), Action.ALLOCATABLE),
        (node(), node(features=["A"]), Action.FEATURES),
        (node(), node(labels={"a": "b"}, cpu="2"), Action.LABELS | Action.ALLOCATABLE),
    ],
)
def test_actions_of_node_are_what_has_changed(old, new, actions):
    assert node_actions(old, new) == actions


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (None, WEB, Action.ADD),
        (WEB, None, Action.DELETE),
        (WEB, WEB, Action(0)),
        (WEB, DB, Action.LABELS),
        (view(cpu="1"), view(cpu="2"), Action.REQUESTS),
        (with_actual("1"), with_actual("2"), Action.REQUESTS),
        (WEB, view("other", cpu="1"), Action.LABELS | Action.REQUESTS),
    ],
)
def test_actions_of_pod_are_what_has_changed(old, new, actions):
    assert pod_actions(old, new) == actions


def test_node_that_is_tolerated_or_selected_as_before_is_no_reason():
    for plugin, fields, old, new in (
        ("TaintToleration", {}, node(), node(taints=[{"key": "a", "effect": "PreferNoSchedule"}])),
        ("NodeAffinity", SSD, node(labels={"disk": "ssd"}), node(labels={"disk": "ssd", "a": "b"})),
        ("NodeUnschedulable", {}, node(), node(taints=[TAINT])),
    ):
        assert not is_worth_requeuing(view(**fields), {plugin}, node_event(old, new), FeatureGates())
    assert is_worth_requeuing(
        view(), {"NodeAffinity"}, node_event(node(), node(labels={"a": "b"})), FeatureGates()
    )
    evicting = node_event(None, node(taints=[{"key": "a", "effect": "NoExecute"}]))
    assert not is_worth_requeuing(view(), {"TaintToleration"}, evicting, FeatureGates())
