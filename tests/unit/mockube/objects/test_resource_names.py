"""Names of kinds, as kubectl takes them."""

import pytest

from mockube.client.discovery import DiscoveredResource
from mockube.client.resources import row
from mockube.objects.resource_names import find_resource


def found(api_version, plural, kind, *short_names):
    return DiscoveredResource(
        resource=row(api_version, plural, kind),
        verbs=frozenset({"get"}),
        subresources=frozenset(),
        singular=kind.lower(),
        short_names=short_names,
    )


RESOURCES = [
    found("v1", "pods", "Pod", "po"),
    found("v1", "events", "Event", "ev"),
    found("apps/v1", "deployments", "Deployment", "deploy"),
    found("events.k8s.io/v1", "events", "Event", "ev"),
    found("example.com/v1", "pos", "Po"),
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("Deployment", "deployments.apps/v1", id="kind"),
        pytest.param("DEPLOYMENT", "deployments.apps/v1", id="upper case"),
        pytest.param("deployment", "deployments.apps/v1", id="singular"),
        pytest.param("deployments", "deployments.apps/v1", id="plural"),
        pytest.param("deploy", "deployments.apps/v1", id="short name"),
        pytest.param("deployments.apps", "deployments.apps/v1", id="with group"),
        pytest.param("Deployment.apps", "deployments.apps/v1", id="kind with group"),
        pytest.param("deployments.v1beta1.apps", "deployments.apps/v1beta1", id="with version and group"),
        pytest.param("Event", "events/v1", id="first group"),
        pytest.param("Event.events.k8s.io", "events.events.k8s.io/v1", id="group with dots"),
        pytest.param("Pod.", "pods/v1", id="core group"),
        pytest.param("po", "pos.example.com/v1", id="kind before short name"),
        pytest.param("deployments.extensions", None, id="another group"),
        pytest.param("unicorns", None, id="unknown"),
    ],
)
def test_resource_is_found_by_name(name, expected):
    resource = find_resource(RESOURCES, name)
    described = resource and f"{resource.resource.group_resource}/{resource.resource.version}"
    assert described == expected
