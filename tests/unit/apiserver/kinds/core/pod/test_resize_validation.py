"""Validation of pods/resize."""

import pytest

from tests.support.field_rules import changed, update_errors
from tests.support.valid_pods import CONTAINER, POD

MIRROR = {"metadata.annotations": {"kubernetes.io/config.mirror": "a"}}
RUNNING = {"name": "c", "state": {"running": {}}}
RESTARTED = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
BOTH = {"requests": {"cpu": "1", "memory": "1Mi"}, "limits": {"cpu": "2", "memory": "2Mi"}}


def errors_of(old, new):
    """Return the errors of a resize between two pods whose container has requests and limits."""
    base = changed(POD, {"spec.containers.0.resources": BOTH})
    return update_errors("v1", "Pod", changed(base, old), changed(base, new), "resize")


def cpu(container="containers.0", amount="1500m"):
    return {f"spec.{container}.resources.requests.cpu": amount}


def init(**fields):
    return {"spec.initContainers": [{**CONTAINER, "name": "i", "resources": BOTH, **fields}]}


def of_pod(**resources):
    return {"spec.resources": resources}


RESIZES = [
    pytest.param({}, {}, [], id="nothing"),
    pytest.param({}, cpu(), [], id="request"),
    pytest.param({}, cpu(amount="3"),
        [('spec.containers[0].resources.requests: Invalid value: "3": must be less than or equal to cpu limit '
          "of 2")], id="request above limit"),
    pytest.param({}, {"spec.containers.0.resources.limits.memory": "3Mi"}, [], id="limit"),
    pytest.param({"spec.containers.0.resources": {"requests": {"cpu": "1"}}}, {"spec.containers.0.resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
        [], id="request is added"),
    pytest.param({}, {"spec.containers.0.resources": {"limits": BOTH["limits"]}},
        ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
        id="requests are removed"),
    pytest.param({}, {"spec.containers.0.resources": {**BOTH, "limits": {"cpu": "2"}}},
        ["spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"], id="one limit is removed"),
    pytest.param({}, {"spec.containers.0.resources.limits.ephemeral-storage": "1Gi"},
        ["spec: Forbidden: only cpu and memory resources are mutable"], id="ephemeral storage"),
    pytest.param({}, {"spec.containers.0.image": "b"},
        ["spec: Forbidden: only cpu and memory resources are mutable"], id="image"),
    pytest.param({}, {"spec.containers.0.resources": {**BOTH, "requests": BOTH["limits"]}},
        ['spec: Invalid value: "": Pod QOS Class may not change as a result of resizing'], id="quality of service"),
    pytest.param({}, {"spec.containers": [{**CONTAINER, "resources": BOTH}, {**CONTAINER, "name": "d"}]},
        ["spec.containers: Forbidden: containers may not be added or removed on resize"], id="container is added"),
    pytest.param({}, {"spec.containers.0.name": "d"},
        ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
        id="container is renamed"),
    pytest.param({}, {"spec.nodeName": "n"},
        ["spec: Forbidden: only cpu and memory resources are mutable"], id="other field"),
    pytest.param(MIRROR, {**MIRROR, **cpu()}, ["[]: Forbidden: static pods cannot be resized"], id="mirror pod"),
    pytest.param({"spec.os": {"name": "windows"}}, {"spec.os": {"name": "windows"}, **cpu()},
        ["[]: Forbidden: windows pods cannot be resized"], id="Windows"),
    pytest.param({"status": {"containerStatuses": [RUNNING]}}, cpu(),
        ["spec: Forbidden: Pod running on node without support for resize"], id="node without support"),
    pytest.param({"status": {"containerStatuses": [{"name": "d"}, {**RUNNING, "resources": {}}]}}, cpu(),
        [], id="node with support"),
    pytest.param({"status": {"qosClass": "Guaranteed"}}, {"status": {"qosClass": "Guaranteed"}, **cpu()},
        ['spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing'],
        id="quality of service in the status"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), RESIZES)
def test_resizes_are_validated(old, new, expected):
    assert errors_of(old, new) == expected


INIT = [
    pytest.param(init(), {**init(), **cpu("initContainers.0")}, [], id="init container"),
    pytest.param(init(restartPolicy="Always"), {**init(restartPolicy="Always"), **cpu("initContainers.0")},
        [], id="sidecar"),
    pytest.param(init(), init(image="b"),
        [("spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are "
          "mutable")], id="image"),
    pytest.param({}, init(),
        ["spec.initContainers: Forbidden: initContainers may not be added or removed on resize"],
        id="container is added"),
    pytest.param(init(), init(resources={"limits": BOTH["limits"]}),
        ["spec.initContainers[0].resources.requests: Forbidden: resource requests cannot be removed"],
        id="requests are removed"),
    pytest.param(init(**RESTARTED), {**init(**RESTARTED), **cpu("initContainers.0")},
        [("spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy of "
          "RestartContainer cannot be resized")], id="container that restarts"),
    pytest.param(init(restartPolicy="Always", **RESTARTED), {**init(restartPolicy="Always", **RESTARTED), **cpu("initContainers.0")},
        [], id="sidecar that restarts"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), INIT)
def test_resizes_of_init_containers_are_validated(old, new, expected):
    assert errors_of(old, new) == expected


OF_PODS = [
    pytest.param(of_pod(requests={"cpu": "1"}), of_pod(requests={"cpu": "2"}), [], id="request"),
    pytest.param({}, of_pod(requests={"cpu": "2"}), [], id="resources are added"),
    pytest.param(of_pod(requests={"cpu": "2"}), {},
        ["spec.resources: Forbidden: pod-level resources cannot be removed"], id="resources are removed"),
    pytest.param(of_pod(requests={"cpu": "2"}, limits={"cpu": "2"}), of_pod(limits={"cpu": "2"}),
        ["spec.resources.requests: Forbidden: pod-level resource requests cannot be removed"], id="requests are removed"),
    pytest.param(of_pod(requests={"cpu": "2"}, limits={"cpu": "2"}), of_pod(requests={"cpu": "2"}),
        ["spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"], id="limits are removed"),
    pytest.param(of_pod(requests={"cpu": "2"}), of_pod(requests={"cpu": "2", "hugepages-2Mi": "2Mi"}, limits={"hugepages-2Mi": "2Mi"}),
        ["spec: Forbidden: only cpu and memory resources are mutable at pod-level"], id="huge pages"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), OF_PODS)
def test_resizes_of_pods_are_validated(old, new, expected):
    assert errors_of(old, new) == expected
