"""Tolerations determine how long pods stay on tainted nodes."""

from datetime import timedelta

import pytest

from mockube.controller_manager.controllers.tainteviction.controller import no_execute_taints, tolerated_time

UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
GPU = {"key": "gpu", "value": "a100", "effect": "NoExecute"}


def tolerating(key="", seconds=None, **fields):
    span = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"operator": "Exists", **({"key": key} if key else {}), **span, **fields}


@pytest.mark.parametrize(
    ("taints", "tolerations", "seconds"),
    [
        pytest.param([UNREACHABLE], [], 0, id="no toleration"),
        pytest.param([UNREACHABLE], [tolerating("other")], 0, id="toleration of another taint"),
        pytest.param([UNREACHABLE], [tolerating(UNREACHABLE["key"], 300)], 300, id="five minutes"),
        pytest.param([UNREACHABLE], [tolerating(UNREACHABLE["key"])], None, id="without limit"),
        pytest.param([UNREACHABLE], [tolerating()], None, id="everything"),
        pytest.param(
            [UNREACHABLE], [tolerating(UNREACHABLE["key"], effect="NoSchedule")], 0, id="another effect"
        ),
        pytest.param([UNREACHABLE], [tolerating(UNREACHABLE["key"], -5)], 0, id="negative seconds"),
        pytest.param([UNREACHABLE, GPU], [tolerating(UNREACHABLE["key"], 300)], 0, id="one of two"),
        pytest.param(
            [UNREACHABLE, GPU],
            [tolerating(UNREACHABLE["key"], 300), tolerating("gpu", 20)],
            20,
            id="the shorter",
        ),
        pytest.param(
            [UNREACHABLE, GPU], [tolerating(UNREACHABLE["key"], 300), tolerating("gpu")], 300, id="the finite"
        ),
        pytest.param([GPU], [{"key": "gpu", "value": "a100"}], None, id="its value"),
        pytest.param([GPU], [{"key": "gpu", "operator": "Equal", "value": "h100"}], 0, id="another value"),
    ],
)
def test_toleration_seconds_of_pod(taints, tolerations, seconds):
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert tolerated_time(taints, tolerations) == expected


def test_only_no_execute_taints_evict():
    node = {"spec": {"taints": [GPU, {"key": "a", "effect": "NoSchedule"}]}}
    assert no_execute_taints(node) == [GPU]
    assert no_execute_taints({}) == []
