import pytest

from mockube.client.component_helpers.pod_requests import nonzero_requests, pod_requests

MEGABYTE = 1024 * 1024


def container(*, always=False, **requests):
    restart = {"restartPolicy": "Always"} if always else {}
    return {"resources": {"requests": requests}} | restart


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container()]}, 0, id="empty"),
        pytest.param({"containers": [container(cpu="1"), container(cpu="500m")]}, 1500, id="all that run"),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="2"), container(cpu="500m")],
            },
            2000,
            id="an init container that needs more",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="2", always=True)]},
            3000,
            id="sidecar with containers",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="1", always=True), container(cpu="3")],
            },
            4000,
            id="init container after a sidecar",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="3"), container(cpu="1", always=True)],
            },
            3000,
            id="init container before a sidecar",
        ),
        pytest.param({"containers": [container(cpu="1")], "overhead": {"cpu": "250m"}}, 1250, id="overhead"),
        pytest.param(
            {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "3"}}},
            3000,
            id="of the whole pod",
        ),
    ],
)
def test_pod_requests(spec, cpu):
    assert pod_requests(spec)["cpu"] == cpu


def test_extended_resources_have_their_units():
    spec = {"containers": [container(memory="1Mi", **{"example.com/gpu": "2"})]}
    assert pod_requests(spec) == {"memory": MEGABYTE, "example.com/gpu": 2}


def test_pod_without_requests_has_nonzero_defaults():
    assert nonzero_requests({"containers": [container(), container(cpu="0")]}) == {
        "cpu": 100,
        "memory": 400 * MEGABYTE,
    }
