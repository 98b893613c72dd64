"""Resource usage of containers, and the annotations and objects that specify it."""

from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.usage.expressions import Expressions
from mockube.apimachinery.usage.usage import containers_usage, running_containers, total
from mockube.component_base.clock import SteppedClock


class StubUsage:
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


def usage_by_container(tree=None, own=None, cluster=()):
    expressions = Expressions(SteppedClock().now, SeededRandom())
    found = containers_usage(tree or pod(), {}, StubUsage(own, cluster), expressions)
    return {
        name: {resource: str(amount) for resource, amount in amounts.items()}
        for name, amounts in found.items()
    }


MIN_USAGE = {"cpu": "1m", "memory": "16Mi"}


def test_default_usage_is_half_of_requests():
    assert usage_by_container() == {"c": {"cpu": "1500m", "memory": "512Mi"}, "d": MIN_USAGE}


def test_usage_annotations_apply_to_each_container():
    annotations = {"kwok.x-k8s.io/usage-cpu": "100m"}
    assert usage_by_container(pod(annotations)) == {
        "c": {"cpu": "100m", "memory": "512Mi"},
        "d": {"cpu": "100m", "memory": "16Mi"},
    }


def test_invalid_usage_annotation_gives_no_sample():
    assert usage_by_container(pod({"kwok.x-k8s.io/usage-cpu": "much"}))["d"] == {"memory": "16Mi"}


def test_resource_usage_precedes_cluster_resource_usage():
    own, cluster = usage(rule(cpu="7m")), [usage(rule(cpu="8m"))]
    assert usage_by_container(own=own, cluster=cluster)["d"]["cpu"] == "7m"
    assert usage_by_container(cluster=cluster)["d"]["cpu"] == "8m"
    assert usage_by_container(pod({"kwok.x-k8s.io/usage-cpu": "100m"}), cluster=cluster)["d"]["cpu"] == "8m"


def test_usage_rules_select_containers():
    own = usage(rule("c", cpu="1", requests="30"), rule(cpu="2"))
    assert usage_by_container(own=own)["c"] == {"cpu": "1", "memory": "512Mi", "requests": "30"}
    assert usage_by_container(own=own)["d"] == {"cpu": "2", "memory": "16Mi"}


def test_first_matching_cluster_resource_usage_applies():
    cluster = [
        usage(rule(cpu="1"), selector={"matchNamespaces": ["other"]}),
        usage(rule(cpu="2"), selector={"matchNames": ["other"]}),
        usage(rule(cpu="3"), selector={"matchNames": ["p"], "matchNamespaces": ["ns"]}),
        usage(rule(cpu="4")),
    ]
    assert usage_by_container(cluster=cluster)["d"]["cpu"] == "3"


def test_usage_expressions_are_evaluated():
    own = usage({"usage": {"cpu": {"expression": 'Quantity("5m") * 2'}, "memory": {"expression": "nobody"}}})
    assert usage_by_container(own=own)["d"] == {"cpu": "10m"}


def test_only_running_containers_have_usage():
    sidecar, init = {"name": "s", "restartPolicy": "Always"}, {"name": "i"}
    statuses = [{"name": "c", "state": {"terminated": {}}}, {"name": "d", "state": {"running": {}}}]
    found = running_containers(pod(status={"containerStatuses": statuses}, initContainers=[init, sidecar]))
    assert [one["name"] for one in found] == ["d", "s"]
    assert [*running_containers(pod(status={"phase": "Pending"}))] == []


def test_usage_totals():
    tree = pod()
    expressions = Expressions(SteppedClock().now, SeededRandom())
    amounts = total(containers_usage(tree, {}, StubUsage(), expressions).values())
    assert {name: str(amount) for name, amount in amounts.items()} == {"cpu": "1501m", "memory": "528Mi"}
