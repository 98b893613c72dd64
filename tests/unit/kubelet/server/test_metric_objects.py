"""The families that kwok's Metric objects make of the usage of a node."""

from types import SimpleNamespace

import pytest

from mockube.apimachinery.usage.expressions import UsageExpressionError
from mockube.component_base.metrics import Buckets
from mockube.kubelet.server.metric_objects import metric_family

PODS = [{"metadata": {"name": name}} for name in ("a", "b")]


class Usage:
    """The value of an expression is the number in it; names are those of the subject, and words are errors."""

    def value(self, expression, *, measurement, pod, container):
        assert measurement is MEASUREMENT
        match expression:
            case "pod":
                return pod["metadata"]["name"]
            case "container":
                return f"{pod['metadata']['name']}/{container['name']}"
            case "missing":
                raise KeyError(expression)
            case "invalid":
                raise UsageExpressionError(expression)
            case "quantity":
                return SimpleNamespace(quantity=SimpleNamespace(number=7))
            case "only b" if pod["metadata"]["name"] == "a":
                raise TypeError(expression)
            case "only b":
                return 1
        return float(expression)


class Measured:
    pods = PODS

    def running_containers(self):
        return [(PODS[1], {"name": "c"})]


MEASUREMENT = Measured()


def label(value):
    return [{"name": "of", "value": value}]


@pytest.mark.parametrize(
    ("metric", "samples"),
    [
        ({"kind": "gauge", "value": "3"}, [((), 3.0)]),
        ({"kind": "counter", "value": "quantity"}, [((), 7.0)]),
        ({"kind": "gauge", "dimension": "node", "value": "3"}, [((), 3.0)]),
        (
            {"kind": "gauge", "dimension": "pod", "value": "1", "labels": label("pod")},
            [(("a",), 1.0), (("b",), 1.0)],
        ),
        (
            {"kind": "gauge", "dimension": "container", "value": "1", "labels": label("container")},
            [(("b/c",), 1.0)],
        ),
        ({"kind": "gauge", "dimension": "cluster", "value": "1"}, []),
        ({"kind": "gauge", "dimension": "pod", "value": "only b"}, [((), 1.0)]),
        ({"kind": "gauge", "value": "missing"}, []),
        ({"kind": "gauge", "value": "invalid"}, []),
        ({"kind": "gauge", "value": "three"}, []),
        ({"kind": "gauge"}, []),
        ({"kind": "gauge", "value": "1", "labels": label("missing")}, []),
    ],
)
def test_samples_of_a_metric(metric, samples):
    assert metric_family({"name": "m", **metric}, Usage(), MEASUREMENT).samples == samples


@pytest.mark.parametrize("kind", ["summary", "", None])
def test_metric_of_another_kind_is_none(kind):
    assert metric_family({"name": "m", "kind": kind, "value": "1"}, Usage(), MEASUREMENT) is None


def test_family_has_name_help_type_and_labels():
    labels = [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}]
    family = metric_family(
        {"name": "m", "kind": "counter", "help": "h", "value": "1", "labels": labels}, Usage(), MEASUREMENT
    ).family
    assert (family.name, family.type, family.help, family.labels) == ("m", "counter", "h", ("x", "y"))
    bare = metric_family({"kind": "gauge", "value": "1"}, Usage(), MEASUREMENT).family
    assert (bare.name, bare.help, bare.labels) == ("", "", ())


def test_hidden_bucket_counts_for_the_next_one_and_buckets_are_sorted():
    buckets = [
        {"le": 10, "value": "4.9"},
        {"le": 1, "value": "2"},
        {"le": 5, "value": "3", "hidden": True},
        {"le": 20, "value": "1", "hidden": True},
    ]
    collected = metric_family({"name": "m", "kind": "histogram", "buckets": buckets}, Usage(), MEASUREMENT)
    assert collected.family.buckets == (1.0, 10.0)
    assert collected.samples == [((), Buckets((2, 7, 1), 1 * 2 + 5 * 3 + 10 * 4 + 20 * 1))]
