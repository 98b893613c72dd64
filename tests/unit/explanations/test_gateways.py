"""Explanations of Gateways and of the routes that are attached to them."""

import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import condition, facts_of, node_of, resource_of, thing

VERSION = "gateway.networking.k8s.io/v1"
ACCEPTED = condition("Accepted", "True", "Accepted", "served")
WAITING = condition("Accepted", "Unknown", "Pending", "Waiting for controller")
CLASS = thing(
    "GatewayClass", "eg", api_version=VERSION, namespace="", spec={"controllerName": "example.com/eg"}
)


def listener(*conditions, name="http", routes=1):
    return {"name": name, "attachedRoutes": routes, "conditions": [*conditions]}


def gateway(*listeners, conditions=(ACCEPTED,), **spec):
    spec = {"gatewayClassName": "eg", **spec}
    return thing(
        "Gateway",
        "front",
        api_version=VERSION,
        spec=spec,
        status={"conditions": [*conditions], "listeners": [*listeners]},
    )


def route(*conditions, parents=({"name": "front"},), backend="web", port=80):
    rules = [{"backendRefs": [{"name": backend, "port": port}]}]
    reported = [{"parentRef": parent, "conditions": [*conditions]} for parent in parents if conditions]
    return thing(
        "HTTPRoute",
        "web",
        api_version=VERSION,
        spec={"parentRefs": [*parents], "rules": rules},
        status={"parents": reported},
    )


def service(**spec):
    ports = [{"port": 80, "name": "http"}]
    return thing("Service", "web", spec={"ports": ports, "selector": {"a": "b"}, **spec})


def slice_of(*addresses):
    found = thing("EndpointSlice", "web-1", api_version="discovery.k8s.io/v1")
    found["metadata"]["labels"] = {"kubernetes.io/service-name": "web"}
    return found | {"endpoints": [{"addresses": [each], "conditions": {"ready": True}} for each in addresses]}


def explained(obj, *objects, **more):
    return explain(resource_of(obj), obj, facts_of(obj, node_of(), *objects, **more))


BROKEN = listener(
    condition("Programmed", "False", "Invalid", "no certificate"),
    condition("ResolvedRefs", "False", "InvalidCertificateRef", 'secret "default/tls" does not exist'),
    name="https",
)
CLASH = listener(condition("Conflicted", "True", "HostnameConflict", "two of one host"))


@pytest.mark.parametrize(
    ("obj", "objects", "state", "cause"),
    [
        (gateway(listener()), (), "NoProblem", "its listeners are programmed, and have routes"),
        (gateway(listener(routes=0)), (), "Explained", "no route is attached to it"),
        (
            gateway(listener(), BROKEN),
            (),
            "Explained",
            "listener https has the condition ResolvedRefs=False, ",
        ),
        (gateway(CLASH), (), "Explained", "Conflicted=True, HostnameConflict: two of one host"),
        (
            gateway(conditions=[condition("Accepted", "False", "Invalid", "bad address")]),
            (),
            "Explained",
            "it has the condition Accepted=False, Invalid: bad address",
        ),
        (gateway(conditions=[WAITING]), (), "Explained", "there is no GatewayClass eg"),
        (gateway(conditions=[]), (CLASS,), "Unknown", "none of the controller example.com/eg runs"),
        (CLASS | {"status": {"conditions": [WAITING]}}, (), "Unknown", "no program has accepted it"),
        (CLASS | {"status": {"conditions": [ACCEPTED]}}, (), "NoProblem", "example.com/eg has accepted it"),
    ],
)
def test_gateway_is_explained_by_its_conditions(obj, objects, state, cause):
    explanation = explained(obj, *objects)
    assert explanation.state == state
    assert cause in explanation.cause


READY = (gateway(listener()), service(), slice_of("10.0.0.1"))


@pytest.mark.parametrize(
    ("obj", "objects", "state", "cause"),
    [
        (route(ACCEPTED), READY, "NoProblem", "its Gateways accept it"),
        (route(parents=()), READY, "Explained", "it names no Gateway as its parent"),
        (
            route(ACCEPTED, parents=[{"name": "back"}]),
            READY,
            "Explained",
            "there is no Gateway back in default",
        ),
        (
            route(condition("Accepted", "False", "NotAllowedByListeners", "other namespace")),
            READY,
            "Explained",
            "on the Gateway front, it has the condition Accepted=False, NotAllowedByListeners: other namespace",
        ),
        (
            route(ACCEPTED, condition("ResolvedRefs", "False", "BackendNotFound", "no service")),
            READY,
            "Explained",
            "ResolvedRefs=False, BackendNotFound: no service",
        ),
        (route(), READY, "Unknown", "the controller of the Gateway front has not looked at it yet"),
        (
            route(),
            (gateway(conditions=[WAITING]), *READY[1:]),
            "Explained",
            "the Gateway front, to which it is attached, does not serve: there is no GatewayClass eg",
        ),
        (
            route(ACCEPTED, backend="nope"),
            READY,
            "Explained",
            "the Service nope, to which the route leads, does not exist",
        ),
        (route(ACCEPTED, port=81), READY, "Explained", "has no port 81"),
        (
            route(ACCEPTED),
            (*READY[:2], slice_of()),
            "Explained",
            "no pod in default has the labels of its selector",
        ),
    ],
)
def test_route_is_explained_by_its_parents_and_services(obj, objects, state, cause):
    explanation = explained(obj, *objects)
    assert explanation.state == state
    assert cause in explanation.cause


def test_gateway_that_the_user_may_not_read_is_named():
    explanation = explained(route(), *READY[1:], refused=["gateways.gateway.networking.k8s.io"])
    assert explanation.state == "Unknown"
    assert explanation.cause == "its parent is the Gateway front, which you may not read"
