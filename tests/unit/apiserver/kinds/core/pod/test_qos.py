"""The QoS class of a pod follows from the resources of its containers."""

import pytest

from mockube.apiserver.kinds.core.pod.qos import older_qos_class, qos_class


def container(requests=None, limits=None):
    given = {"requests": requests, "limits": limits}
    return {"name": "c", "resources": {field: value for field, value in given.items() if value}}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [container()]}, "BestEffort", id="no resources"),
        pytest.param({"containers": None}, "BestEffort", id="has no containers"),
        pytest.param({"containers": [container({"cpu": "0"})]}, "BestEffort", id="zero request"),
        pytest.param(
            {"containers": [container({"example.com/gpu": "1"})]}, "BestEffort", id="only other resources"
        ),
        pytest.param({"containers": [container({"cpu": "1"})]}, "Burstable", id="requests only"),
        pytest.param({"containers": [container(BOTH, BOTH)]}, "Guaranteed", id="requests are limits"),
        pytest.param(
            {"containers": [container({"cpu": "1000m", "memory": "1Gi"}, BOTH)]},
            "Guaranteed",
            id="equal quantities in other notation",
        ),
        pytest.param(
            {"containers": [container({"cpu": "1"}, {"cpu": "1"})]}, "Burstable", id="no limit of memory"
        ),
        pytest.param(
            {"containers": [container(BOTH, BOTH), container()]},
            "Burstable",
            id="one container without resources",
        ),
        pytest.param(
            {"containers": [container(BOTH, BOTH)], "initContainers": [container({"cpu": "1"})]},
            "Burstable",
            id="init containers count",
        ),
        pytest.param(
            {"containers": [container()], "resources": {"requests": BOTH, "limits": BOTH}},
            "Guaranteed",
            id="pod-level resources",
        ),
    ],
)
def test_qos_class(spec, expected):
    assert qos_class({"spec": spec}) == expected


@pytest.mark.parametrize("resources", [{}, {"requests": {"example.com/gpu": "1"}}])
def test_pod_level_resources_without_supported_ones_do_not_count_since_1_37(resources):
    pod = {"spec": {"containers": [container(BOTH, BOTH)], "resources": resources}}
    assert (qos_class(pod), older_qos_class(pod)) == ("Guaranteed", "BestEffort")
