"""Names of resources in criteria are refused if no request can have them."""

import pytest

from mockube.apiserver.control.served_names import check_resource
from mockube.apiserver.kinds.api_resource import SCALE, STATUS, Resource, Subresource

LOG = Subresource(name="log", verbs=("get",))
SERVED = (
    Resource(
        group="", version="v1", name="pods", kind="Pod", short_names=("po",), subresources=(STATUS, LOG)
    ),
    Resource(
        group="apps",
        version="v1",
        name="deployments",
        kind="Deployment",
        short_names=("deploy",),
        subresources=(STATUS, SCALE),
    ),
    Resource(
        group="networking.k8s.io",
        version="v1",
        name="ingresses",
        kind="Ingress",
        singular="ingress",
        short_names=("ing",),
    ),
    Resource(
        group="example.com", version="v1", name="websites", kind="Website", short_names=("ws",), custom=True
    ),
)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("", id="none"),
        pytest.param("pods", id="name"),
        pytest.param("pods/log", id="subresource"),
        pytest.param("deployments.apps", id="with its group"),
        pytest.param("deployments.apps/scale", id="subresource with the group"),
        pytest.param("*", id="all"),
        pytest.param("pods*", id="pattern"),
        pytest.param("*/status", id="pattern of a subresource"),
        pytest.param("websites", id="custom resource"),
        pytest.param("websites.example.com/status", id="status that a definition may add"),
        pytest.param("shops.example.com", id="later resource of a custom group"),
        pytest.param("shops.shop.io", id="later resource of another group"),
        pytest.param("shops.shop.io/scale", id="scale of a later resource"),
        pytest.param("*.shop.io", id="pattern of a later resource"),
        pytest.param("deployments.shop.io", id="later resource with a name of Kubernetes"),
        pytest.param(
            "gateways.gateway.networking.k8s.io", id="later resource of a group of Kubernetes' projects"
        ),
    ],
)
def test_name_that_can_match_is_accepted(pattern):
    check_resource(pattern, SERVED)


@pytest.mark.parametrize(
    ("pattern", "suggestion"),
    [
        pytest.param("pod", "pods", id="singular name"),
        pytest.param("Pod", "pods", id="kind"),
        pytest.param("PODS", "pods", id="upper case"),
        pytest.param("po", "pods", id="short name"),
        pytest.param("podz", "pods", id="misspelt name"),
        pytest.param("ingres", "ingresses", id="misspelt singular name"),
        pytest.param("pod/log", "pods/log", id="subresource of a singular name"),
        pytest.param("pods/stauts", "pods/status", id="misspelt subresource"),
        pytest.param("pods/x", "pods", id="unknown subresource"),
        pytest.param("deployment.apps", "deployments.apps", id="singular name with a group"),
        pytest.param("deployments.app", "deployments.apps", id="misspelt group"),
        pytest.param("deploy.app/scale", "deployments.apps/scale", id="all parts"),
        pytest.param(
            "ingresses.networking.k8s.i0", "ingresses.networking.k8s.io", id="misspelt group with dots"
        ),
        pytest.param("website", "websites", id="singular name of a custom resource"),
        pytest.param("website.example.com", "websites.example.com", id="the same with its group"),
        pytest.param("ws.example.com/status", "websites.example.com", id="short name of a custom resource"),
        pytest.param(
            "websites.example.com/log", "websites.example.com", id="subresource that no custom resource has"
        ),
    ],
)
def test_name_that_never_matches_is_refused_with_nearest(pattern, suggestion):
    with pytest.raises(ValueError, match="is not a resource") as caught:
        check_resource(pattern, SERVED)
    assert str(caught.value) == f'"{pattern}" is not a resource: did you mean "{suggestion}"?'


@pytest.mark.parametrize(
    ("pattern", "example"),
    [
        pytest.param("shops", "shops.example.com", id="bare name"),
        pytest.param("shops.shop", "shops.example.com", id="group without a dot"),
        pytest.param("shops.shop.io/log", "shops.shop.io", id="subresource of a later resource"),
        pytest.param("x*", "x*.example.com", id="pattern without a group"),
    ],
)
def test_name_that_may_be_installed_later_needs_its_group(pattern, example):
    with pytest.raises(ValueError, match="is not a resource") as caught:
        check_resource(pattern, SERVED)
    assert str(caught.value) == (
        f'"{pattern}" is not a resource: one that is installed later is named with its group, as "{example}"'
    )
