"""Which Services get a load balancer, and which Service changes are reconciled."""

import pytest

from mockube.controller_manager.controllers.serviceloadbalancer.controller import (
    FINALIZER,
    finalizer_patch,
    needs_cleanup,
    needs_load_balancer,
    needs_sync,
    status_patch,
)


def service(kind="LoadBalancer", *, ip=None, finalizers=(), deleted=False, annotations=None, **spec):
    metadata = {"name": "web", "uid": "u", "finalizers": list(finalizers), "annotations": annotations or {}}
    if deleted:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    ingress = {"loadBalancer": {"ingress": [{"ip": ip, "ipMode": "VIP"}]} if ip else {}}
    return {"metadata": metadata, "spec": {"type": kind, **spec}, "status": ingress}


OURS = {"finalizers": [FINALIZER]}


@pytest.mark.parametrize(
    ("subject", "wanted", "cleanup"),
    [
        (service(), True, False),
        (service(loadBalancerClass="a.b/c"), False, False),
        (service("ClusterIP"), False, False),
        (service("ClusterIP", **OURS), False, True),
        (service(**OURS), True, False),
        (service(deleted=True, **OURS), True, True),
        (service(deleted=True, finalizers=["a.b/c"]), True, False),
    ],
)
def test_service_needs_load_balancer_or_cleanup(subject, wanted, cleanup):
    assert (needs_load_balancer(subject), needs_cleanup(subject)) == (wanted, cleanup)


@pytest.mark.parametrize(
    ("old", "new", "looked"),
    [
        pytest.param(None, service(), True, id="new Service"),
        pytest.param(None, service("ClusterIP"), False, id="other Service type"),
        pytest.param(service("ClusterIP"), service(), True, id="becomes a load balancer"),
        pytest.param(service(), service("ClusterIP", **OURS), True, id="no longer a load balancer"),
        pytest.param(service(), service(ip="1.2.3.4", **OURS), False, id="own status write"),
        pytest.param(service(), service(annotations={"a": "b"}), True, id="an annotation"),
        pytest.param(service(), service(ports=[{"port": 80}]), True, id="a port"),
        pytest.param(service(), service(loadBalancerSourceRanges=["10.0.0.0/8"]), True, id="source ranges"),
        pytest.param(service(), service(sessionAffinity="ClientIP"), True, id="affinity"),
        pytest.param(
            service(), service(sessionAffinityConfig={"clientIP": {}}), True, id="affinity's timeout"
        ),
        pytest.param(service(), service(externalIPs=["1.2.3.4"]), True, id="external addresses"),
        pytest.param(service(), service(externalTrafficPolicy="Local"), True, id="traffic policy"),
        pytest.param(service(), service(healthCheckNodePort=30000), True, id="port of health checks"),
        pytest.param(service(), service(ipFamilies=["IPv6"]), True, id="families"),
        pytest.param(service(loadBalancerClass="a"), service(loadBalancerClass="b"), False, id="other class"),
        pytest.param(
            service("ClusterIP", **OURS), service("ClusterIP", **OURS), True, id="still to clean up"
        ),
        pytest.param(service(), service(loadBalancerIP="1.2.3.4"), True, id="an address"),
        pytest.param(service(), service(selector={"a": "b"}), False, id="its pods"),
        pytest.param(service("NodePort"), service("ClusterIP"), False, id="other kinds"),
    ],
)
def test_relevant_service_changes_are_recognised(old, new, looked):
    assert needs_sync(old, new) == looked


def test_finalizer_and_status_patches():
    assert finalizer_patch(service(), present=True) == {"metadata": {"uid": "u", "finalizers": [FINALIZER]}}
    assert finalizer_patch(service(**OURS), present=True) is None
    assert finalizer_patch(service(**OURS), present=False) == {
        "metadata": {"uid": "u", "$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    }
    assert status_patch(service(ip="1.2.3.4"), "1.2.3.4") is None
    assert status_patch(service(ip="1.2.3.4"), "") == {
        "metadata": {"uid": "u"},
        "status": {"loadBalancer": {"ingress": None}},
    }
    assert status_patch(service(), "") is None
