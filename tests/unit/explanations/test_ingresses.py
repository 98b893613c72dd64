"""Explanations of Ingresses."""

import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import event, facts_of, node_of, resource_of, thing

NETWORKING = "networking.k8s.io/v1"
DEFAULT = {"ingressclass.kubernetes.io/is-default-class": "true"}


def ingress(service="web", port=None, address="127.0.0.1", **spec):
    backend = {"service": {"name": service, "port": port or {"number": 80}}}
    rule = {"host": "a.localhost", "http": {"paths": [{"path": "/shop", "backend": backend}]}}
    spec = {"ingressClassName": "nginx", "rules": [rule], **spec}
    status = {"loadBalancer": {"ingress": [{"ip": address}]}} if address else {}
    return thing("Ingress", "shop", api_version=NETWORKING, spec=spec, status=status)


def ingress_class(name="nginx", **fields):
    found = thing("IngressClass", name, api_version=NETWORKING, namespace="", spec={"controller": "x"})
    found["metadata"].update(fields)
    return found


def service(**spec):
    return thing(
        "Service", "web", spec={"ports": [{"port": 80, "name": "http"}], "selector": {"a": "b"}, **spec}
    )


def slice_of(*addresses):
    found = thing("EndpointSlice", "web-1", api_version="discovery.k8s.io/v1")
    found["metadata"]["labels"] = {"kubernetes.io/service-name": "web"}
    return found | {"endpoints": [{"addresses": [each], "conditions": {"ready": True}} for each in addresses]}


def explained(obj, *objects, **more):
    return explain(resource_of(obj), obj, facts_of(obj, node_of(), *objects, **more))


READY = (service(), slice_of("10.0.0.1"), ingress_class())


@pytest.mark.parametrize(
    ("obj", "objects", "state", "cause"),
    [
        (ingress(), READY, "NoProblem", "its Services have ready addresses"),
        (ingress(port={"name": "http"}), READY, "NoProblem", "its Services have ready addresses"),
        (
            ingress("nope"),
            READY,
            "Explained",
            "the Service nope, to which a.localhost/shop leads, does not exist",
        ),
        (ingress(port={"number": 81}), READY, "Explained", "leads, has no port 81"),
        (ingress(port={"name": "grpc"}), READY, "Explained", "leads, has no port grpc"),
        (
            ingress(),
            (service(), slice_of(), ingress_class()),
            "Explained",
            "does not answer: no pod in default has the labels of its selector",
        ),
        (
            ingress(rules=[], defaultBackend={"service": {"name": "nope", "port": {"number": 80}}}),
            READY,
            "Explained",
            "the Service nope, to which the default backend leads, does not exist",
        ),
        (
            ingress(tls=[{"hosts": ["a.localhost"], "secretName": "cert"}]),
            READY,
            "Explained",
            "the Secret cert, which has the certificate of a.localhost, does not exist",
        ),
        (ingress(address=""), READY, "Unknown", "no controller of the class nginx has given it an address"),
        (
            ingress(address="", ingressClassName="none"),
            READY,
            "Explained",
            "there is no IngressClass none, so that no controller serves it",
        ),
        (
            ingress(address="", ingressClassName=None),
            READY,
            "Explained",
            "no IngressClass is the default one",
        ),
        (
            ingress(address="", ingressClassName=None),
            (*READY[:2], ingress_class(annotations=DEFAULT)),
            "Unknown",
            "no controller of the default class has given it an address",
        ),
    ],
)
def test_ingress_has_cause(obj, objects, state, cause):
    explanation = explained(obj, *objects)
    assert explanation.state == state, explanation
    assert cause in explanation.cause


def test_event_of_controller_is_cause():
    obj = ingress()
    duplicate = event(obj, "DuplicatePath", "a.localhost/shop is that of other/shop")
    explanation = explained(obj, *READY, duplicate)
    assert explanation.state == "Explained"
    assert "a.localhost/shop is that of other/shop" in explanation.cause


def test_classes_that_may_not_be_listed_are_no_cause():
    found = explained(
        ingress(address=""), service(), slice_of("10.0.0.1"), refused=("ingressclasses.networking.k8s.io",)
    )
    assert "IngressClass" not in found.cause
