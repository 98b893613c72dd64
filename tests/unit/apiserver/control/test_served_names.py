"""Names of resources in criteria are refused if no request can have them."""

import contextlib
import re

import pytest

from mockube.apiserver.control.matching import Match
from mockube.apiserver.control.served_names import (
    check_requests,
    check_resource,
    check_served_kind,
    check_served_resource,
)
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
    Resource(group="", version="v1", name="nodes", kind="Node", namespaced=False, subresources=(STATUS,)),
    Resource(group="", version="v1", name="namespaces", kind="Namespace", namespaced=False),
    Resource(
        group="authorization.k8s.io",
        version="v1",
        name="selfsubjectaccessreviews",
        kind="SelfSubjectAccessReview",
        namespaced=False,
        verbs=("create",),
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


@pytest.mark.parametrize(
    "criteria",
    [
        pytest.param({}, id="every request"),
        pytest.param({"verbs": ("create",), "namespace": "shop"}, id="every resource"),
        pytest.param({"resource": "pods", "verbs": ("create",)}, id="a verb of the resource"),
        pytest.param({"resource": "pods/log", "verbs": ("create", "get")}, id="one of several verbs"),
        pytest.param({"resource": "pods*", "verbs": ("create",)}, id="a verb of one that a pattern has"),
        pytest.param({"resource": "nodes", "namespace": ""}, id="no namespace"),
        pytest.param({"resource": "*", "namespace": "shop"}, id="a namespace of one that a pattern has"),
        pytest.param({"resource": "namespaces", "namespace": "shop"}, id="the namespace itself"),
        pytest.param(
            {"resource": "shops.shop.io/scale", "verbs": ("create",), "namespace": "shop"},
            id="a later resource",
        ),
    ],
)
def test_criteria_that_a_request_can_meet_are_accepted(criteria):
    check_requests(Match(**criteria), SERVED)


@pytest.mark.parametrize(
    ("criteria", "problem"),
    [
        pytest.param(
            {"resource": "pods/log", "verbs": ("create", "patch")},
            '"pods/log" has no verb "create", "patch": it has get',
            id="verbs of a subresource",
        ),
        pytest.param(
            {"resource": "selfsubjectaccessreviews.authorization.k8s.io", "verbs": ("delete",)},
            '"selfsubjectaccessreviews.authorization.k8s.io" has no verb "delete": it has create',
            id="verb of a review",
        ),
        pytest.param(
            {"resource": "*/status", "verbs": ("create",)},
            '"*/status" has no verb "create": it has get, patch, update',
            id="verb of a pattern",
        ),
        pytest.param(
            {"resource": "nodes/status", "namespace": "default"},
            '"nodes/status" is not namespaced: its requests have no namespace',
            id="namespace",
        ),
    ],
)
def test_criteria_that_no_request_can_meet_are_refused(criteria, problem):
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        check_requests(Match(**criteria), SERVED)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("Pod", ""),
        ("Podd", 'no kind "Podd" is served: did you mean "Pod"?'),
        ("pods", 'no kind "pods" is served: did you mean "Pod"?'),
        ("Shop", 'no kind "Shop" is served'),
    ],
)
def test_kind_that_is_not_served_is_refused(kind, problem):
    with refused_with(problem):
        check_served_kind(kind, SERVED)


def refused_with(problem):
    """What expects a refusal with a problem; nothing for "" """
    return pytest.raises(ValueError, match=f"^{re.escape(problem)}$") if problem else contextlib.nullcontext()


@pytest.mark.parametrize(
    ("name", "with_group", "suggestion"),
    [
        pytest.param("pods", False, None, id="served"),
        pytest.param("deployments", False, None, id="served in a group"),
        pytest.param("deployments.apps", True, None, id="served with its group"),
        pytest.param("pod", False, "pods", id="singular"),
        pytest.param("deploy", True, "deployments.apps", id="short name"),
        pytest.param("deployments", True, "deployments.apps", id="without its group"),
        pytest.param("deployments.apps", False, "deployments", id="with a group"),
        pytest.param("pods/status", False, "pods,subresource=status", id="with a subresource"),
        pytest.param("shops", False, "", id="unknown"),
    ],
)
def test_resource_that_is_not_served_is_refused(name, with_group, suggestion):
    end = f": did you mean resource={suggestion}?" if suggestion else ""
    with refused_with("" if suggestion is None else f'no resource "{name}" is served{end}'):
        check_served_resource(name, SERVED, with_group=with_group)
