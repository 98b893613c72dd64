"""What a pod asks for in all."""

import pytest

from apiserver.admission.limits import pod_total


def container(cpu, **rest):
    return {"resources": {"requests": {"cpu": cpu}}, **rest}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": None}, {}, id="no containers"),
        pytest.param({"containers": [container("1"), container("2")]}, {"cpu": "3"}, id="all at once"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("2"), container("5")]},
            {"cpu": "5"},
            id="or the most before",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("3")],
            },
            {"cpu": "5"},
            id="beside one that goes on",
        ),
        pytest.param(
            {
                "containers": [container("4")],
                "initContainers": [container("2", restartPolicy="Always"), container("3")],
            },
            {"cpu": "6"},
            id="which goes on beside the rest",
        ),
        pytest.param(
            {"containers": [container("9")], "resources": {"requests": {"cpu": "1"}}},
            {"cpu": "1"},
            id="as the pod itself says",
        ),
    ],
)
def test_pod_total(spec, expected):
    assert {name: str(amount) for name, amount in pod_total(spec, "requests").items()} == expected
