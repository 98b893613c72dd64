"""The variables of Services in a container: of those that there were when it started."""

import pytest

from mockube.container_runtime.config.environment import References, environment_of
from tests.support.controllers.pods import container, pod

RUNNING = {"running": {"startedAt": "2026-01-01T00:00:05Z"}}


def service(name, created):
    return {
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": created},
        "spec": {"clusterIP": "10.0.0.7", "ports": [{"port": 80}]},
    }


@pytest.mark.parametrize("field", ["containerStatuses", "ephemeralContainerStatuses"])
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (RUNNING, {"OLD_SERVICE_HOST"}),
        ({"waiting": {}}, {"OLD_SERVICE_HOST", "NEW_SERVICE_HOST"}),
        ({}, {"OLD_SERVICE_HOST", "NEW_SERVICE_HOST"}),
    ],
    ids=["running", "waiting", "new"],
)
def test_running_container_has_no_variables_of_later_services(state, expected, field):
    references = References(
        services=[service("old", "2026-01-01T00:00:05Z"), service("new", "2026-01-01T00:00:06Z")]
    )
    subject = container("c")
    tree = pod(subject) | {"status": {field: [{"name": "c", "state": state}]}}
    names = {name for name in environment_of(tree, subject, references) if name.endswith("_SERVICE_HOST")}
    assert names == expected
