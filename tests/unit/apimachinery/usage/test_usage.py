"""What containers use, and what says so."""

from mockube.apimachinery.clock import SteppedClock
from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.usage.expressions import Expressions
from mockube.apimachinery.usage.usage import containers_usage, running_containers, total


class Given:
    def __init__(self, own=None, cluster=()):
        self._own, self._cluster = own, cluster

    def of_pod(self, namespace, name):
        assert (namespace, name) == ("ns", "p")
        return self._own

    def of_cluster(self):
        return self._cluster


def pod(annotations=None, status=None, **spec):
    containers = [{"name": "c", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}, {"name": "d"}]
    return {
        "metadata": {"name": "p", "namespace": "ns", "annotations": annotations or {}},
        "spec": {"containers": containers, **spec},
        "status": {"phase": "Running", **(status or {})},
    }


def usage(*rules, selector=None):
    return {"spec": {"usages": rules, "selector": selector or {}}}


def rule(*containers, **amounts):
    return {"containers": [*containers], "usage": {name: {"value": value} for name, value in amounts.items()}}


def used(tree=None, own=None, cluster=()):
    expressions = Expressions(SteppedClock(), SeededRandom())
    found = containers_usage(tree or pod(), {}, Given(own, cluster), expressions)
    return {
        name: {resource: str(amount) for resource, amount in amounts.items()}
        for name, amounts in found.items()
    }


LEAST = {"cpu": "1m", "memory": "16Mi"}


def test_half_of_the_requests_is_used():
    assert used() == {"c": {"cpu": "1500m", "memory": "512Mi"}, "d": LEAST}


def test_annotations_are_for_each_container():
    annotations = {"kwok.x-k8s.io/usage-cpu": "100m"}
    assert used(pod(annotations)) == {
        "c": {"cpu": "100m", "memory": "512Mi"},
        "d": {"cpu": "100m", "memory": "16Mi"},
    }


def test_an_annotation_that_is_no_amount_is_no_sample():
    assert used(pod({"kwok.x-k8s.io/usage-cpu": "much"}))["d"] == {"memory": "16Mi"}


def test_a_usage_of_the_pods_name_comes_before_those_of_the_cluster():
    own, cluster = usage(rule(cpu="7m")), [usage(rule(cpu="8m"))]
    assert used(own=own, cluster=cluster)["d"]["cpu"] == "7m"
    assert used(cluster=cluster)["d"]["cpu"] == "8m"
    assert used(pod({"kwok.x-k8s.io/usage-cpu": "100m"}), cluster=cluster)["d"]["cpu"] == "8m"


def test_rules_of_containers():
    own = usage(rule("c", cpu="1", requests="30"), rule(cpu="2"))
    assert used(own=own)["c"] == {"cpu": "1", "memory": "512Mi", "requests": "30"}
    assert used(own=own)["d"] == {"cpu": "2", "memory": "16Mi"}


def test_the_first_usage_of_the_cluster_that_selects_the_pod_counts():
    cluster = [
        usage(rule(cpu="1"), selector={"matchNamespaces": ["other"]}),
        usage(rule(cpu="2"), selector={"matchNames": ["other"]}),
        usage(rule(cpu="3"), selector={"matchNames": ["p"], "matchNamespaces": ["ns"]}),
        usage(rule(cpu="4")),
    ]
    assert used(cluster=cluster)["d"]["cpu"] == "3"


def test_expressions():
    own = usage({"usage": {"cpu": {"expression": 'Quantity("5m") * 2'}, "memory": {"expression": "nobody"}}})
    assert used(own=own)["d"] == {"cpu": "10m"}


def test_containers_that_run():
    sidecar, init = {"name": "s", "restartPolicy": "Always"}, {"name": "i"}
    statuses = [{"name": "c", "state": {"terminated": {}}}, {"name": "d", "state": {"running": {}}}]
    found = running_containers(pod(status={"containerStatuses": statuses}, initContainers=[init, sidecar]))
    assert [one["name"] for one in found] == ["d", "s"]
    assert [*running_containers(pod(status={"phase": "Pending"}))] == []


def test_totals():
    tree = pod()
    expressions = Expressions(SteppedClock(), SeededRandom())
    amounts = total(containers_usage(tree, {}, Given(), expressions).values())
    assert {name: str(amount) for name, amount in amounts.items()} == {"cpu": "1501m", "memory": "528Mi"}
