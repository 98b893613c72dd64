"""Expressions in kwok's ResourceUsages."""

from datetime import UTC, datetime

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.usage.expressions import Expressions, UsageExpressionError
from mockube.component_base.clock import SteppedClock

POD = {
    "metadata": {"name": "p", "annotations": {"kwok.x-k8s.io/usage-cpu": "250m"}},
    "spec": {"nodeName": "n"},
}
ANNOTATED = """
    "kwok.x-k8s.io/usage-cpu" in pod.metadata.annotations
    ? Quantity(pod.metadata.annotations["kwok.x-k8s.io/usage-cpu"])
    : Quantity("1m")
"""
CONTAINER = {"name": "c", "resources": {"requests": {"cpu": "2"}}}


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def amount(clock):
    expressions = Expressions(clock.now, SeededRandom())

    def amount(text, pod=POD):
        return str(expressions.amount(text, pod, {"metadata": {"name": "n"}}, CONTAINER))

    return amount


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Quantity("100m")', "100m"),
        ('Quantity("1Gi") + Quantity("512Mi")', "1536Mi"),
        ('Quantity("1") - Quantity("250m")', "750m"),
        ('Quantity("1Gi") * 2', "2Gi"),
        ('Quantity("1") * 1.5', "1500m"),
        ('Quantity("1") / 3', "333333334n"),
        ('Quantity("3") / 2.0', "1500m"),
        ('-Quantity("1")', "-1"),
        ('Quantity("1") > Quantity("900m") ? 2 : 3', "2"),
        ('Quantity("1") <= Quantity("900m") ? 2 : 3', "3"),
        ("0.25", "250m"),
        ("true", "1"),
        (ANNOTATED, "250m"),
        ('"x" in node.metadata.labels ? Quantity("1") : Quantity("2")', "2"),
        ('Quantity(container.resources.requests["cpu"]) * 0.5', "1"),
        ("pod.spec.nodeName == 'n' ? 1 : 2", "1"),
    ],
)
def test_usage_amounts_are_evaluated(amount, text, expected):
    assert amount(text) == expected


def test_usage_changes_with_time(amount, clock):
    pod = {"metadata": {"name": "p", "creationTimestamp": format_time(clock.now())}}
    for seconds, expected in ((0, "0"), (90, "1536Ki"), (30, "2Mi")):
        clock.advance(seconds)
        assert amount('Quantity("1Mi") * (pod.SinceSecond() / 60.0)', pod) == expected
    assert amount("SinceSecond(pod)", pod) == "120"
    unix = int(clock.now().timestamp())
    assert amount("UnixSecond(Now())") == str(unix)
    assert amount("now().UnixSecond()") == str(unix)
    assert datetime.fromtimestamp(unix, UTC) == clock.now().replace(microsecond=0)


def test_random_is_between_0_and_1(amount):
    assert amount("Rand() >= 0.0 && Rand() < 1.0") == "1"
    assert len({amount("Rand()") for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Quantity(", "Syntax error"),
        ("nobody", "undeclared reference to 'nobody'"),
        ('"text"', "unsupported type: str"),
        ('Quantity("x")', "quantities must match"),
        ('Quantity("1") / 0', "division by zero"),
        ('Quantity("1") * pod', "no such overload"),
        ('dyn(Quantity("1")) + 1', "no such overload"),
        ('pod.metadata.labels["a"]', "no such key"),
        ("pod.SinceSecond()", "no such overload"),
        ("[1, 2, 3].map(x, [1, 2, 3].map(y, [1, 2, 3].map(z, " * 3 + "1" + ")))" * 3 + ".size()", ""),
    ],
)
def test_invalid_usage_expression_is_refused(amount, text, problem):
    for _ in range(2):
        with pytest.raises(UsageExpressionError) as caught:
            amount(text)
        assert problem in str(caught.value)


def test_cost_of_usage_expression_is_limited(amount):
    items = "[" + ",".join("1" * 1 for _ in range(100)) + "]"
    with pytest.raises(UsageExpressionError, match="cost limit exceeded"):
        amount(f"{items}.map(x, {items}.map(y, x + y).size()).size()")
