"""Validation of changed Services and of their status."""

import pytest

from tests.support.field_rules import ABSENT, changed, update_errors
from tests.support.valid_services import SERVICE

BALANCER = {
    "type": "LoadBalancer",
    "allocateLoadBalancerNodePorts": True,
    "externalTrafficPolicy": "Cluster",
}
LOCAL = {**BALANCER, "externalTrafficPolicy": "Local", "healthCheckNodePort": 30000}
EXTERNAL = {
    "type": "ExternalName",
    "clusterIP": ABSENT,
    "clusterIPs": ABSENT,
    "externalName": "a",
    "internalTrafficPolicy": ABSENT,
}
BOTH = {
    "clusterIPs": ["10.0.0.1", "::1"],
    "ipFamilies": ["IPv4", "IPv6"],
    "ipFamilyPolicy": "PreferDualStack",
}
SINGLE = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
SLOPPY = {"clusterIP": "010.0.0.1", "clusterIPs": ["010.0.0.1"]}


def service(fields):
    return changed(SERVICE, {f"spec.{path}": value for path, value in fields.items()})


def errors_of(old, new):
    return update_errors("v1", "Service", service(old), service(new))


def status_errors(old, new, spec):
    old_service, new_service = (
        {**service(spec), "status": {"loadBalancer": {"ingress": each}}} for each in (old, new)
    )
    return update_errors("v1", "Service", old_service, new_service, "status")


def headless():
    return {"clusterIP": "None", "clusterIPs": ["None"]}


CHANGES = [
    pytest.param({}, {}, [], id="nothing"),
    pytest.param({}, {"ports.0.port": 81}, [], id="ports"),
    pytest.param({}, {"clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2"]},
        ['spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set'], id="address"),
    pytest.param({}, {"clusterIP": "", "clusterIPs": []},
        ["spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset"], id="first address is removed"),
    pytest.param({"clusterIP": "", "clusterIPs": []}, {}, [], id="first address is set"),
    pytest.param(SINGLE, BOTH, [], id="second address is added"),
    pytest.param({}, {**BOTH, "clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2", "::1"]},
        ['spec.clusterIPs[0]: Invalid value: ["10.0.0.2","::1"]: may not change once set'],
        id="second address is added to another"),
    pytest.param(BOTH, {**BOTH, "clusterIPs": ["10.0.0.1", "::2"]},
        ['spec.clusterIPs[1]: Invalid value: ["10.0.0.1","::2"]: may not change once set'], id="second address changes"),
    pytest.param(BOTH, SINGLE, [], id="second address is removed"),
    pytest.param(BOTH, {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "PreferDualStack"},
        [("spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing "
          "the secondary clusterIP"),
         ("spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing "
          "the secondary ipFamily")], id="second address is removed without policy"),
    pytest.param(SINGLE, {"ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"},
        ['spec.ipFamilies[0]: Invalid value: ["IPv6"]: may not change once set',
         'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`'],
        id="family changes"),
    pytest.param(SINGLE, {**BOTH, "ipFamilies": ["IPv6", "IPv4"]},
        ['spec.ipFamilies[0]: Invalid value: ["10.0.0.1","::1"]: may not change once set',
         'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`',
         'spec.clusterIPs[1]: Invalid value: "::1": expected an IPv4 value as indicated by `ipFamilies[1]`'],
        id="first family changes with a second"),
    pytest.param(SINGLE, {"ipFamilies": []}, [], id="families are removed"),
    pytest.param(SINGLE, {"ipFamilies": [], "clusterIP": "", "clusterIPs": []},
        ["spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset",
         "spec.ipFamilies[0]: Invalid value: null: primary ipFamily can not be unset"],
        id="families are removed with addresses"),
    pytest.param({}, headless(),
        ['spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set'], id="address becomes None"),
    pytest.param(headless(), {},
        ['spec.clusterIPs[0]: Invalid value: ["10.0.0.1"]: may not change once set'], id="None becomes an address"),
    pytest.param({**headless(), **SINGLE}, {**headless(), "ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"},
        [], id="headless changes families"),
    pytest.param({}, EXTERNAL, [], id="type becomes ExternalName"),
    pytest.param(EXTERNAL, {}, [], id="type becomes ClusterIP"),
    pytest.param(SLOPPY, {**SLOPPY, "selector": {"a": "b"}}, [], id="sloppy address stays"),
    pytest.param({"externalIPs": ["01.2.3.4"], "externalTrafficPolicy": "Cluster"}, {"externalIPs": ["01.2.3.4", "02.2.3.4"], "externalTrafficPolicy": "Cluster"},
        ['spec.externalIPs[1]: Invalid value: "02.2.3.4": must not have leading 0s'], id="sloppy external address stays"),
    pytest.param({**BALANCER, "loadBalancerSourceRanges": ["10.0.0.1/8"]}, {**BALANCER, "loadBalancerSourceRanges": [" 10.0.0.1/8", "11.0.0.1/8"]},
        [('spec.LoadBalancerSourceRanges[1]: Invalid value: "11.0.0.1/8": must not have bits set beyond the '
          "prefix length")], id="sloppy source stays"),
    pytest.param({**BALANCER, "loadBalancerClass": "a"}, {**BALANCER, "loadBalancerClass": "b"},
        ['spec.loadBalancerClass: Invalid value: "b": may not change once set'], id="class changes"),
    pytest.param(BALANCER, {**BALANCER, "loadBalancerClass": "b"},
        ['spec.loadBalancerClass: Invalid value: "b": may not change once set'], id="class is set"),
    pytest.param({**BALANCER, "loadBalancerClass": "a"}, BALANCER,
        ["spec.loadBalancerClass: Invalid value: null: may not change once set"], id="class is removed"),
    pytest.param({**BALANCER, "loadBalancerClass": "a"}, {"loadBalancerClass": "a"},
        ["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        id="class stays with another type"),
    pytest.param({**BALANCER, "loadBalancerClass": "a"}, {}, [], id="class changes with the type"),
    pytest.param({}, {**BALANCER, "loadBalancerClass": "b"}, [], id="type becomes LoadBalancer with a class"),
    pytest.param(LOCAL, {**LOCAL, "healthCheckNodePort": 30001},
        ["spec.healthCheckNodePort: Forbidden: field is immutable"], id="health check changes"),
    pytest.param(LOCAL, BALANCER, [], id="health check is no longer needed"),
    pytest.param(BALANCER, LOCAL, [], id="health check is needed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_are_validated(old, new, expected):
    assert errors_of(old, new) == expected


INGRESS = [
    pytest.param([{"ip": "10.0.0.1", "ipMode": "VIP"}], [], id="address"),
    pytest.param([{"ip": "::1", "ipMode": "Proxy"}], [], id="address of version 6"),
    pytest.param([{"ip": "a", "ipMode": "VIP"}],
        [('status.loadBalancer.ingress[0].ip: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or '
          "2001:db8::ffff)")], id="invalid address"),
    pytest.param([{"ip": "010.0.0.1", "ipMode": "VIP"}],
        ['status.loadBalancer.ingress[0].ip: Invalid value: "010.0.0.1": must not have leading 0s'], id="sloppy address"),
    pytest.param([{"ip": "10.0.0.1"}],
        ["status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set"], id="no mode"),
    pytest.param([{"ip": "10.0.0.1", "ipMode": "NAT"}],
        ['status.loadBalancer.ingress[0].ipMode: Unsupported value: "NAT": supported values: "Proxy", "VIP"'],
        id="unknown mode"),
    pytest.param([{"hostname": "a", "ipMode": "VIP"}],
        ["status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set"],
        id="mode without address"),
    pytest.param([{"hostname": "a.b"}], [], id="host name"),
    pytest.param([{"hostname": "a_b"}],
        [('status.loadBalancer.ingress[0].hostname: Invalid value: "a_b": a lowercase RFC 1123 subdomain must '
          "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid host name"),
    pytest.param([{"hostname": "10.0.0.1"}],
        [('status.loadBalancer.ingress[0].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP '
          "address")], id="address as host name"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), INGRESS)
def test_status_is_validated(change, expected):
    assert status_errors([], change, BALANCER) == expected


STATUS = [
    pytest.param([], [{"hostname": "a"}],
        ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"],
        id="ingress of another type"),
    pytest.param([{"hostname": "a"}], [], [], id="no ingress of another type"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), STATUS)
def test_changed_status_is_validated(old, new, expected):
    assert status_errors(old, new, {}) == expected


def test_status_keeps_sloppy_addresses():
    ingress = [{"ip": "010.0.0.1", "ipMode": "VIP"}]
    assert status_errors(ingress, ingress, BALANCER) == []
