"""Cached pod info is recomputed only for the parts of a pod that changed."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.scheduler.podinfo import PodInfo

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
