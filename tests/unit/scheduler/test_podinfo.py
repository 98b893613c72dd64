"""Cached pod info is recomputed only for the parts of a pod that changed."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.podview import PodView
from mockube.scheduler import podinfo
from mockube.scheduler.podinfo import PodInfo

SPEC = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
NEAR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {}}]
    }
}


def pod(**spec):
    return PodView.of({"metadata": {"namespace": "default", "name": "p", "uid": "u"}, "spec": SPEC | spec})


def info_of(view):
    return PodInfo.of(view, FeatureGates())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"nodeName": "node-1"}, id="bound"),
        pytest.param({"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}, id="resized"),
        pytest.param({"initContainers": [{"name": "i", "restartPolicy": "Always"}]}, id="with a sidecar"),
        pytest.param({"resources": {"requests": {"cpu": "3"}}}, id="as a whole"),
        pytest.param({"overhead": {"memory": "1Gi"}}, id="with overhead"),
        pytest.param({"priority": 7}, id="more important"),
        pytest.param({"affinity": NEAR}, id="pod affinity"),
    ],
)
def test_pod_info_of_same_pod_is_equal(change):
    again, new = info_of(pod()).with_view(pod(**change)), info_of(pod(**change))
    for field in ("spec", "priority", "requested", "nonzero_requested", "host_ports", "terms"):
        assert getattr(again, field) == getattr(new, field)


def test_pod_info_follows_resize_in_status():
    running = PodView.of({**pod().object, "status": {"containerStatuses": [{"name": "c"}]}})
    resized = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
    after = PodView.of({**pod().object, "status": {"containerStatuses": [resized]}})
    assert info_of(pod()).with_view(running).requested["cpu"] == 1000
    assert info_of(running).with_view(after).requested["cpu"] == 3000


def test_unchanged_parts_of_pod_info_are_reused():
    first = info_of(pod())
    assert first.with_view(pod(nodeName="node-1")).requested is first.requested
    near = info_of(pod(affinity=NEAR))
    assert near.with_view(pod(affinity=NEAR, nodeName="node-1")).terms is near.terms


def test_pod_info_has_what_nodes_are_compared_with():
    containers = [
        {
            "name": "c",
            "resources": {"requests": {"cpu": "1"}},
            "ports": [{"hostPort": 80}, {"containerPort": 81}],
        },
        {"name": "d"},
    ]
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "emptyDir": {}},
        {"name": "c", "ephemeral": {}},
    ]
    info = info_of(pod(containers=containers, volumes=volumes, priority=7, affinity=NEAR))
    assert (info.priority, dict(info.requested), info.claims) == (7, {"cpu": 1000}, ("data",))
    assert dict(info.nonzero_requested) == {"cpu": 1100, "memory": 400 << 20}
    assert info.scored_requests == info.nonzero_requested
    assert [(port.ip, port.protocol, port.port) for port in info.host_ports] == [("0.0.0.0", "TCP", 80)]
    assert (len(info.terms.affinity), info.affinity) == (1, NEAR)
    plain = info_of(pod())
    assert (plain.priority, plain.claims, plain.host_ports, plain.affinity) == (0, (), (), {})


def labelled(view, **metadata):
    return PodView.of({**view.object, "metadata": {**view.object["metadata"], **metadata}})


@pytest.mark.parametrize(
    ("later", "counts"),
    [
        pytest.param(pod(nodeName="node-1"), True, id="bound"),
        pytest.param(labelled(pod(), annotations={"a": "b"}), True, id="annotated"),
        pytest.param(labelled(pod(), labels={"a": "b"}), False, id="with other labels"),
        pytest.param(labelled(pod(), deletionTimestamp="2026-01-01T00:00:00Z"), False, id="terminating"),
        pytest.param(pod(priority=7), False, id="more important"),
        pytest.param(pod(containers=[]), False, id="with other requests"),
    ],
)
def test_pod_counts_as_before_if_nothing_that_counts_has_changed(later, counts):
    first = info_of(pod())
    assert first.with_view(later).counts_as(first) is counts


CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}


@pytest.mark.parametrize(
    "fields",
    [
        {"affinity": {"nodeAffinity": {}}},
        {"hostNetwork": True},
        {"hostUsers": False},
        {"nodeSelector": {"disk": "ssd"}},
        {"overhead": {"memory": "1Gi"}},
        {"resources": {"limits": {"cpu": "3"}}},
        {"tolerations": [{"operator": "Exists"}]},
        {"topologySpreadConstraints": [{"topologyKey": "zone"}]},
        {"priority": 7},
        {"containers": [CONTAINER | {"image": "j"}]},
        {"containers": [CONTAINER | {"ports": [{"hostPort": 80}]}]},
        {"containers": [CONTAINER | {"resources": {**CONTAINER["resources"], "limits": {"cpu": "2"}}}]},
        {"containers": [CONTAINER | {"restartPolicy": "Always"}]},
        {"containers": [CONTAINER | {"restartPolicyRules": [{"action": "Restart"}]}]},
        {"initContainers": [{"name": "i", "image": "i"}]},
        {"volumes": [{"name": "v", "image": {"reference": "i"}}]},
    ],
)
def test_pods_that_ask_nodes_for_something_else_have_another_signature(fields):
    plain = info_of(pod(containers=[CONTAINER]))
    assert info_of(pod(**{"containers": [CONTAINER], **fields})).signature != plain.signature


@pytest.mark.parametrize(
    "fields",
    [
        {"nodeName": "a"},
        {"containers": [CONTAINER | {"name": "d", "command": ["true"], "env": []}]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data-0"}}]},
        {"hostname": "web-0"},
    ],
)
def test_pods_that_differ_otherwise_have_one_signature(fields):
    plain = info_of(pod(containers=[CONTAINER]))
    assert info_of(pod(**{"containers": [CONTAINER], **fields})).signature == plain.signature


def test_requests_of_few_signatures_are_kept(monkeypatch):
    monkeypatch.setattr(podinfo, "_MAX_SIGNATURES", 3)
    for number in range(9):
        info_of(pod(priority=number))
    assert len(podinfo._requests) <= 3
