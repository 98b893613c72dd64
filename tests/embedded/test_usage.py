"""The walkthrough of HorizontalPodAutoscalers: requests use CPU, and the autoscaler sees it. On a clock that the test advances."""

import pytest

from mockube import Cluster

RESOURCES = {"limits": {"cpu": "500m"}, "requests": {"cpu": "200m"}}
CONTAINER = {
    "name": "php-apache",
    "image": "registry.k8s.io/hpa-example",
    "ports": [{"containerPort": 80}],
    "resources": RESOURCES,
}
LABELS = {"run": "php-apache"}
OBJECTS = [
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "php-apache"},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "php-apache"},
        "spec": {"ports": [{"port": 80}], "selector": LABELS},
    },
    {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "php-apache"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "php-apache"},
            "maxReplicas": 10,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
        },
    },
]
LOAD = "while sleep 0.01; do wget -q -O- http://php-apache; done"


@pytest.fixture
def cluster():
    with Cluster(nodes=1) as cluster:
        yield cluster


def utilization(cluster):
    status = cluster.get("HorizontalPodAutoscaler", "php-apache")["status"]
    return status["currentMetrics"][0]["resource"]["current"]["averageUtilization"]


def test_autoscaler_follows_the_load_of_the_walkthrough(cluster):
    for body in OBJECTS:
        cluster.apply(body)
    cluster.advance(30)
    assert utilization(cluster) == 0
    container = {"name": "c", "image": "busybox:1.28", "command": ["/bin/sh", "-c", LOAD]}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "load-generator"},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }
    )
    highest = 0
    for _ in range(6):
        cluster.advance(15)
        highest = max(highest, utilization(cluster))
    assert highest > 250
    assert cluster.get("Deployment", "php-apache")["spec"]["replicas"] == 7
    assert 40 < utilization(cluster) <= 55
