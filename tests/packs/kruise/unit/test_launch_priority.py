"""The barrier variables of containers with launch priorities."""

import pytest

from mockube.packs.kruise.launch_priority import barrier_variable, launch_priority


def with_key(key):
    return {
        "env": [
            {"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": {"name": "b", "key": key}}}
        ]
    }


@pytest.mark.parametrize("priority", [0, 10, -3])
def test_priority_is_read_from_variable(priority):
    assert (
        launch_priority({"env": [{"name": "A", "value": "p_9"}, barrier_variable("web", priority)]})
        == priority
    )


@pytest.mark.parametrize(
    "container",
    [
        pytest.param({}, id="no variables"),
        pytest.param({"env": [{"name": "KRUISE_CONTAINER_PRIORITY", "value": "3"}]}, id="no barrier"),
        pytest.param({"env": [{"name": "KRUISE_CONTAINER_BARRIER", "value": "p_3"}]}, id="a value"),
        pytest.param(with_key("3"), id="another key"),
        pytest.param(with_key("p_"), id="no number"),
        pytest.param(with_key("p_--3"), id="two signs"),
        pytest.param(with_key("p_²"), id="not a decimal digit"),
        pytest.param(with_key("p_" + "9" * 5000), id="too long for a number"),
    ],
)
def test_other_variables_have_no_priority(container):
    assert launch_priority(container) is None
