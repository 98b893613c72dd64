"""Validation of new Services."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors
from tests.support.valid_services import SERVICE

BALANCER = {
    "type": "LoadBalancer",
    "allocateLoadBalancerNodePorts": True,
    "externalTrafficPolicy": "Cluster",
}
NODE_PORT = {"type": "NodePort", "externalTrafficPolicy": "Cluster"}
EXTERNAL = {
    "type": "ExternalName",
    "clusterIP": ABSENT,
    "clusterIPs": ABSENT,
    "ports": ABSENT,
    "internalTrafficPolicy": ABSENT,
}
HEADLESS = {"clusterIP": "None", "clusterIPs": ["None"]}
AFFINE = {"sessionAffinity": "ClientIP"}
RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"


def errors_of(change):
    return create_errors(
        "v1", "Service", changed(SERVICE, {f"spec.{path}": value for path, value in change.items()})
    )


def port(**fields):
    return {"port": 80, "protocol": "TCP", "targetPort": 80, **fields}


def addresses(*ips, first=None):
    return {"clusterIP": first or ips[0], "clusterIPs": [*ips]}


def external(name):
    return {**EXTERNAL, "externalName": name}


def timeout(seconds):
    return {**AFFINE, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}}


def annotated_errors(annotations, spec):
    fields = {f"spec.{path}": value for path, value in spec.items()}
    return create_errors("v1", "Service", changed(SERVICE, {"metadata.annotations": annotations, **fields}))


TYPES = [
    pytest.param({}, [], id="cluster IP"),
    pytest.param({"type": ""}, ["spec.type: Required value"], id="no type"),
    pytest.param({"type": "Headless"},
        [('spec.type: Unsupported value: "Headless": supported values: "ClusterIP", "ExternalName", '
          '"LoadBalancer", "NodePort"')], id="unknown type"),
    pytest.param(NODE_PORT, [], id="node port"),
    pytest.param(BALANCER, [], id="load balancer"),
    pytest.param(HEADLESS, [], id="headless"),
    pytest.param({**NODE_PORT, **HEADLESS},
        ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
        id="headless node port"),
    pytest.param({**BALANCER, **HEADLESS},
        ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for LoadBalancer services"],
        id="headless load balancer"),
    pytest.param({**HEADLESS, "ports": []}, [], id="headless without ports"),
    pytest.param(external("a.b."), [], id="external name"),
    pytest.param(EXTERNAL, ["spec.externalName: Required value"], id="external name without name"),
    pytest.param(external("."), ["spec.externalName: Required value"], id="external name of a dot"),
    pytest.param(external("a_b"),
        [('spec.externalName: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid external name"),
    pytest.param({**external("a"), "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"},
        ["spec.clusterIPs: Forbidden: may not be set for ExternalName services",
         "spec.ipFamilies: Forbidden: may not be set for ExternalName services",
         "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services"], id="external name with addresses"),
    pytest.param({**external("a"), "ipFamilyPolicy": ""},
        ["spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services"],
        id="external name with an empty policy of families"),
    pytest.param({"selector": {"a b": "c d"}},
        [("spec.selector: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' "
          "or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         ('spec.selector: Invalid value: "c d": a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selector"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), TYPES)
def test_types_are_validated(change, expected):
    assert errors_of(change) == expected


PORTS = [
    pytest.param([], ["spec.ports: Required value"], id="no ports"),
    pytest.param([port(port=1, name="a"), port(port=65535, name="b")], [], id="lowest and highest port"),
    pytest.param([port(port=0)],
        ["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"], id="port zero"),
    pytest.param([port(port=65536)],
        ["spec.ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive"], id="port too high"),
    pytest.param([port(protocol="")], ["spec.ports[0].protocol: Required value"], id="no protocol"),
    pytest.param([port(protocol="HTTP")],
        ['spec.ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"'],
        id="unknown protocol"),
    pytest.param([port(targetPort="http")], [], id="target by name"),
    pytest.param([port(targetPort="a" * 16)],
        ['spec.ports[0].targetPort: Invalid value: "aaaaaaaaaaaaaaaa": must be no more than 15 characters'],
        id="target by long name"),
    pytest.param([port(targetPort=0)],
        ["spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive"], id="target zero"),
    pytest.param([port(targetPort=65536)],
        ["spec.ports[0].targetPort: Invalid value: 65536: must be between 1 and 65535, inclusive"], id="target too high"),
    pytest.param([port(), port(port=81)],
        ["spec.ports[0].name: Required value",
         "spec.ports[1].name: Required value"], id="two ports without names"),
    pytest.param([port(name="A")],
        [('spec.ports[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")], id="invalid name"),
    pytest.param([port(name="a" * 64)],
        ['spec.ports[0].name: Invalid value: "' + "a" * 64 + '": must be no more than 63 characters'], id="long name"),
    pytest.param([port(name="a"), port(name="a", port=81)],
        ['spec.ports[1].name: Duplicate value: "a"'], id="name twice"),
    pytest.param([port(name="a"), port(name="b", protocol="UDP")], [], id="same port by two protocols"),
    pytest.param([port(name="a"), port(name="b")],
        [("spec.ports[1]: Duplicate value: "
          '{"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}')],
        id="same port twice"),
    pytest.param([port(appProtocol="example.com/a")], [], id="application protocol"),
    pytest.param([port(appProtocol="a b")],
        [('spec.ports[0].appProtocol: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid application protocol"),
    pytest.param([port(appProtocol="")],
        ['spec.ports[0].appProtocol: Invalid value: "": name part must be non-empty',
         ('spec.ports[0].appProtocol: Invalid value: "": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="empty application protocol"),
    pytest.param([port(nodePort=30000)],
        ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"], id="node port"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), PORTS)
def test_ports_are_validated(change, expected):
    assert errors_of({"ports": change}) == expected


NODE_PORTS = [
    pytest.param([port(nodePort=30000)], [], id="node port"),
    pytest.param([port(name="a", nodePort=30000), port(name="b", port=81, nodePort=30000)],
        ["spec.ports[1].nodePort: Duplicate value: 30000"], id="same node port twice"),
    pytest.param([port(name="a", nodePort=30000), port(name="b", protocol="UDP", nodePort=30000)],
        [], id="same node port by two protocols"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), NODE_PORTS)
def test_node_ports_are_validated(change, expected):
    assert errors_of({**NODE_PORT, "ports": change}) == expected


ADDRESSES = [
    pytest.param({**addresses("10.0.0.1", "::1"), "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"},
        [], id="two families"),
    pytest.param({"clusterIP": "", "clusterIPs": []}, [], id="no address"),
    pytest.param({"clusterIP": ABSENT, "clusterIPs": ["10.0.0.1"]},
        ['spec.clusterIPs: Invalid value: ["10.0.0.1"]: must be empty when `clusterIP` is not specified'],
        id="list without first address"),
    pytest.param({"clusterIPs": ABSENT}, ["spec.clusterIPs: Required value"], id="first address without list"),
    pytest.param(addresses("10.0.0.1", first="10.0.0.2"),
        ['spec.clusterIPs: Invalid value: ["10.0.0.1"]: first value must match `clusterIP`'], id="other first address"),
    pytest.param(addresses("a"),
        ['spec.clusterIPs[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
        id="invalid address"),
    pytest.param(addresses("10.0.0.01"),
        ['spec.clusterIPs[0]: Invalid value: "10.0.0.01": must not have leading 0s'], id="leading zeros"),
    pytest.param(addresses("::ffff:10.0.0.1"),
        ['spec.clusterIPs[0]: Invalid value: "::ffff:10.0.0.1": must not be an IPv4-mapped IPv6 address'],
        id="mapped address"),
    pytest.param(addresses("None", "10.0.0.1"),
        ["spec.clusterIPs: Invalid value: [\"None\",\"10.0.0.1\"]: 'None' must be the first and only value"],
        id="None beside an address"),
    pytest.param(addresses("10.0.0.1", "None"),
        [('spec.clusterIPs[1]: Invalid value: "None": must be a valid IP address, (e.g. 10.9.8.7 or '
          "2001:db8::ffff)")], id="None as second address"),
    pytest.param(addresses("10.0.0.1", "10.0.0.2"),
        [('spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP '
          "family")], id="two addresses of one family"),
    pytest.param(addresses("10.0.0.1", "::1", "10.0.0.2"),
        ['spec.clusterIPs: Invalid value: ["10.0.0.1","::1","10.0.0.2"]: may only hold up to 2 values'],
        id="three addresses"),
    pytest.param({"ipFamilies": ["IPv5"]},
        ['spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"'], id="unknown family"),
    pytest.param({"ipFamilies": ["IPv4", "IPv4"]},
        ['spec.ipFamilies[1]: Duplicate value: "IPv4"'], id="family twice"),
    pytest.param({**addresses("::1"), "ipFamilies": ["IPv4"]},
        ['spec.clusterIPs[0]: Invalid value: "::1": expected an IPv4 value as indicated by `ipFamilies[0]`'],
        id="address of another family"),
    pytest.param({"ipFamilyPolicy": "DualStack"},
        [('spec.ipFamilyPolicy: Unsupported value: "DualStack": supported values: "PreferDualStack", '
          '"RequireDualStack", "SingleStack"')], id="unknown policy of families"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), ADDRESSES)
def test_addresses_are_validated(change, expected):
    assert errors_of(change) == expected


AFFINITY = [
    pytest.param({"sessionAffinity": ""}, ["spec.sessionAffinity: Required value"], id="no affinity"),
    pytest.param({"sessionAffinity": "Cookie"},
        ['spec.sessionAffinity: Unsupported value: "Cookie": supported values: "ClientIP", "None"'],
        id="unknown affinity"),
    pytest.param({"sessionAffinityConfig": {}},
        ["spec.sessionAffinityConfig: Forbidden: must not be set when session affinity is None"],
        id="configuration without affinity"),
    pytest.param(AFFINE,
        ["spec.sessionAffinityConfig: Required value: when session affinity type is ClientIP"],
        id="affinity without configuration"),
    pytest.param({**AFFINE, "sessionAffinityConfig": {}},
        ["spec.sessionAffinityConfig.clientIP: Required value: when session affinity type is ClientIP"],
        id="affinity with empty configuration"),
    pytest.param({**AFFINE, "sessionAffinityConfig": {"clientIP": {}}},
        [("spec.sessionAffinityConfig.clientIP.timeoutSeconds: Required value: when session affinity type is "
          "ClientIP")], id="affinity without timeout"),
    pytest.param(timeout(0),
        [("spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and "
          "less than 86400")], id="timeout zero"),
    pytest.param(timeout(1), [], id="shortest timeout"),
    pytest.param(timeout(86400), [], id="longest timeout"),
    pytest.param(timeout(86401),
        [("spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and "
          "less than 86400")], id="timeout too long"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), AFFINITY)
def test_session_affinity_is_validated(change, expected):
    assert errors_of(change) == expected


TRAFFIC = [
    pytest.param({"externalIPs": ["1.2.3.4", "2001:db8::1"], "externalTrafficPolicy": "Local"},
        [], id="external addresses"),
    pytest.param({"externalIPs": ["a", "01.2.3.4"], "externalTrafficPolicy": "Cluster"},
        [('spec.externalIPs[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or '
          "2001:db8::ffff)"),
         'spec.externalIPs[1]: Invalid value: "01.2.3.4": must not have leading 0s'], id="invalid external address"),
    pytest.param({"externalIPs": ["0.0.0.0", "127.0.0.1", "169.254.0.1", "224.0.0.1", "::"], "externalTrafficPolicy": "Cluster"},
        ['spec.externalIPs[0]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)',
         ('spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, '
          "::1/128)"),
         ('spec.externalIPs[2]: Invalid value: "169.254.0.1": may not be in the link-local range '
          "(169.254.0.0/16, fe80::/10)"),
         ('spec.externalIPs[3]: Invalid value: "224.0.0.1": may not be in the link-local multicast range '
          "(224.0.0.0/24, ff02::/10)"),
         'spec.externalIPs[4]: Invalid value: "::": may not be unspecified (::)'], id="external addresses of the host"),
    pytest.param({"externalTrafficPolicy": "Local"},
        [('spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible '
          "services")], id="external policy without external traffic"),
    pytest.param({**NODE_PORT, "externalTrafficPolicy": ABSENT},
        ["spec.externalTrafficPolicy: Required value"], id="no external policy"),
    pytest.param({**NODE_PORT, "externalTrafficPolicy": "Global"},
        ['spec.externalTrafficPolicy: Unsupported value: "Global": supported values: "Cluster", "Local"'],
        id="unknown external policy"),
    pytest.param({"internalTrafficPolicy": "Local"}, [], id="internal policy"),
    pytest.param({"internalTrafficPolicy": ABSENT},
        ["spec.internalTrafficPolicy: Required value"], id="no internal policy"),
    pytest.param({"internalTrafficPolicy": "Global"},
        ['spec.internalTrafficPolicy: Unsupported value: "Global": supported values: "Cluster", "Local"'],
        id="unknown internal policy"),
    pytest.param({"trafficDistribution": "PreferSameNode"}, [], id="distribution"),
    pytest.param({"trafficDistribution": "PreferFar"},
        [('spec.trafficDistribution: Unsupported value: "PreferFar": supported values: "PreferClose", '
          '"PreferSameZone", "PreferSameNode"')], id="unknown distribution"),
    pytest.param({"trafficDistribution": ""},
        [('spec.trafficDistribution: Unsupported value: "": supported values: "PreferClose", "PreferSameZone", '
          '"PreferSameNode"')], id="empty distribution"),
    pytest.param({**BALANCER, "externalTrafficPolicy": "Local", "healthCheckNodePort": 65535}, [], id="health check"),
    pytest.param({**BALANCER, "externalTrafficPolicy": "Local"},
        ["spec.healthCheckNodePort: Required value"], id="no health check"),
    pytest.param({**BALANCER, "externalTrafficPolicy": "Local", "healthCheckNodePort": 65536},
        ["spec.healthCheckNodePort: Invalid value: 65536: must be between 1 and 65535, inclusive"],
        id="health check on a port too high"),
    pytest.param({**BALANCER, "healthCheckNodePort": 1},
        [("spec.healthCheckNodePort: Invalid value: 1: may only be set when `type` is 'LoadBalancer' and "
          "`externalTrafficPolicy` is 'Local'")], id="health check without need"),
    pytest.param({"allocateLoadBalancerNodePorts": False},
        ["spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        id="node ports of another type"),
    pytest.param({**BALANCER, "allocateLoadBalancerNodePorts": ABSENT},
        ["allocateLoadBalancerNodePorts: Required value"], id="no choice of node ports"),
    pytest.param({**BALANCER, "loadBalancerClass": "example.com/a"}, [], id="class"),
    pytest.param({**BALANCER, "loadBalancerClass": "a b"},
        [('spec.loadBalancerClass: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid class"),
    pytest.param({**BALANCER, "loadBalancerClass": ""},
        ['spec.loadBalancerClass: Invalid value: "": name part must be non-empty',
         ("spec.loadBalancerClass: Invalid value: \"\": name part must consist of alphanumeric characters, '-', "
          "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="empty class"),
    pytest.param({"loadBalancerClass": "a"},
        ["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        id="class of another type"),
    pytest.param({**BALANCER, "loadBalancerSourceRanges": [" 10.0.0.0/8 ", "::/0"]}, [], id="sources"),
    pytest.param({"loadBalancerSourceRanges": ["10.0.0.0/8"]},
        ["spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        id="sources of another type"),
    pytest.param({**BALANCER, "loadBalancerSourceRanges": ["10.0.0.0", "10.0.0.1/8", "010.0.0.0/8", "10.0.0.0/33", "::ffff:10.0.0.0/104", "10.0.0.0/08"]},
        [('spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. '
          "10.9.8.0/24 or 2001:db8::/64)"),
         ('spec.LoadBalancerSourceRanges[1]: Invalid value: "10.0.0.1/8": must not have bits set beyond the '
          "prefix length"),
         ('spec.LoadBalancerSourceRanges[2]: Invalid value: "010.0.0.0/8": must not have leading 0s in IP or '
          "prefix length"),
         ('spec.LoadBalancerSourceRanges[3]: Invalid value: "10.0.0.0/33": must be a valid CIDR value, (e.g. '
          "10.9.8.0/24 or 2001:db8::/64)"),
         ('spec.LoadBalancerSourceRanges[4]: Invalid value: "::ffff:10.0.0.0/104": must not have an IPv4-mapped '
          "IPv6 address"),
         ('spec.LoadBalancerSourceRanges[5]: Invalid value: "10.0.0.0/08": must not have leading 0s in IP or '
          "prefix length")], id="invalid sources"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), TRAFFIC)
def test_traffic_is_validated(change, expected):
    assert errors_of(change) == expected


ANNOTATIONS = [
    pytest.param(({"service.kubernetes.io/topology-mode": "a", "service.kubernetes.io/topology-aware-hints": "a"}, {}),
        [], id="topology by two names"),
    pytest.param(({"service.kubernetes.io/topology-mode": "a", "service.kubernetes.io/topology-aware-hints": "b"}, {}),
        [('metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: "a": must match '
          "annotations[service.kubernetes.io/topology-aware-hints] when both are specified")],
        id="topology that differs"),
    pytest.param(({RANGES: "10.0.0.0/8, 11.0.0.0/8"}, BALANCER), [], id="sources"),
    pytest.param(({RANGES: " "}, BALANCER), [], id="no sources"),
    pytest.param(({RANGES: "10.0.0.0/8,a"}, BALANCER),
        [('metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Invalid value: "a": '
          "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")], id="invalid sources"),
    pytest.param(({RANGES: "10.0.0.0/8"}, {}),
        [("metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Forbidden: may only be "
          "used when `type` is 'LoadBalancer'")], id="sources of another type"),
    pytest.param(({RANGES: "a"}, {**BALANCER, "loadBalancerSourceRanges": ["10.0.0.0/8"]}),
        [], id="sources in the field"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), ANNOTATIONS)
def test_annotations_are_validated(change, expected):
    assert annotated_errors(*change) == expected
