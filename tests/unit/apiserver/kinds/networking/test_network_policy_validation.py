"""Validation of NetworkPolicies."""

import pytest

from tests.support.field_rules import changed, create_errors, update_errors

POLICY = {
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
}
BAD = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}


def policy(fields):
    return changed(POLICY, {f"spec.{path}": value for path, value in fields.items()})


def policy_errors(change):
    return create_errors("networking.k8s.io/v1", "NetworkPolicy", policy(change))


def port_errors(**port):
    texts = policy_errors({"ingress": [{"ports": [port]}]})
    return [text.removeprefix("spec.ingress[0].ports[0].") for text in texts]


def peer_errors(peer):
    texts = policy_errors({"egress": [{"to": [peer]}]})
    return [text.removeprefix("spec.egress[0].to[0]") for text in texts]


POLICIES = [
    pytest.param({}, [], id="no change"),
    pytest.param({"podSelector": BAD},
        [('spec.podSelector.matchExpressions[0].values[0]: Invalid value: "b c": a valid label must be an empty '
          "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selector"),
    pytest.param({"policyTypes": ["Ingress", "Egress"]}, [], id="both types"),
    pytest.param({"policyTypes": ["Transit"]},
        ['spec.policyTypes[0]: Unsupported value: "Transit": supported values: "Ingress", "Egress"'], id="unknown type"),
    pytest.param({"policyTypes": ["Ingress", "Egress", "Ingress"]},
        [('spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two '
          "policyTypes")], id="three types"),
    pytest.param({"ingress": [{}], "egress": [{}]}, [], id="no peers and ports"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), POLICIES)
def test_policies_are_validated(change, expected):
    assert policy_errors(change) == expected


PORTS = [
    pytest.param({}, [], id="any port"),
    pytest.param({"protocol": "SCTP", "port": 1}, [], id="port"),
    pytest.param({"port": "http"}, [], id="port by name"),
    pytest.param({"port": 0}, ["port: Invalid value: 0: must be between 1 and 65535, inclusive"], id="port zero"),
    pytest.param({"port": 65536},
        ["port: Invalid value: 65536: must be between 1 and 65535, inclusive"], id="port too high"),
    pytest.param({"port": "A"},
        ['port: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
         'port: Invalid value: "A": must contain at least one letter (a-z)'], id="invalid name"),
    pytest.param({"protocol": "HTTP"},
        ['protocol: Unsupported value: "HTTP": supported values: "TCP", "UDP", "SCTP"'], id="unknown protocol"),
    pytest.param({"port": 1, "endPort": 1}, [], id="range"),
    pytest.param({"port": 2, "endPort": 1},
        ["endPort: Invalid value: 1: must be greater than or equal to `port`"], id="range that decreases"),
    pytest.param({"port": 2, "endPort": 65536},
        ["endPort: Invalid value: 65536: must be between 1 and 65535, inclusive"], id="range too high"),
    pytest.param({"endPort": 1},
        ["endPort: Invalid value: 1: may not be specified when `port` is not specified"], id="range without port"),
    pytest.param({"port": "http", "endPort": 1},
        ["endPort: Invalid value: 1: may not be specified when `port` is non-numeric"], id="range of a name"),
    pytest.param({"port": "A", "endPort": 1},
        ["endPort: Invalid value: 1: may not be specified when `port` is non-numeric",
         'port: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
         'port: Invalid value: "A": must contain at least one letter (a-z)'], id="range of an invalid name"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), PORTS)
def test_ports_of_policies_are_validated(change, expected):
    assert port_errors(**change) == expected


PEERS = [
    pytest.param({"podSelector": {}, "namespaceSelector": {}}, [], id="pods and namespaces"),
    pytest.param({}, [": Required value: must specify a peer"], id="no peer"),
    pytest.param({"podSelector": BAD, "namespaceSelector": BAD},
        [('.podSelector.matchExpressions[0].values[0]: Invalid value: "b c": a valid label must be an empty '
          "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"),
         ('.namespaceSelector.matchExpressions[0].values[0]: Invalid value: "b c": a valid label must be an '
          "empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selectors"),
    pytest.param({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}, [], id="block"),
    pytest.param({"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}},
        [": Forbidden: may not specify both ipBlock and another peer"], id="block and pods"),
    pytest.param({"ipBlock": {}}, [".ipBlock.cidr: Required value"], id="no block"),
    pytest.param({"ipBlock": {"cidr": "a", "except": ["b"]}},
        ['.ipBlock.cidr: Invalid value: "a": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
        id="invalid block"),
    pytest.param({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["b"]}},
        [('.ipBlock.except[0]: Invalid value: "b": must be a valid CIDR value, (e.g. 10.9.8.0/24 or '
          "2001:db8::/64)")], id="invalid exception"),
    pytest.param({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}},
        ['.ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`'],
        id="exception of the whole block"),
    pytest.param({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["::/64"]}},
        ['.ipBlock.except[0]: Invalid value: "::/64": must be a strict subset of `cidr`'],
        id="exception of another family"),
    pytest.param({"ipBlock": {"cidr": "010.0.0.0/8", "except": ["10.0.0.1/16"]}},
        ['.ipBlock.cidr: Invalid value: "010.0.0.0/8": must not have leading 0s in IP or prefix length',
         '.ipBlock.except[0]: Invalid value: "10.0.0.1/16": must not have bits set beyond the prefix length'],
        id="sloppy block"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), PEERS)
def test_peers_are_validated(change, expected):
    assert peer_errors(change) == expected


POLICY_UPDATES = [
    pytest.param({"egress": [{"to": [{"ipBlock": {"cidr": "010.0.0.0/8"}}]}]}, {"ingress": [{"from": [{"ipBlock": {"cidr": "010.0.0.0/8"}}]}]},
        [], id="sloppy block stays"),
    pytest.param({}, {"ingress": [{"from": [{"ipBlock": {"cidr": "010.0.0.0/8"}}]}]},
        [('spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "010.0.0.0/8": must not have leading 0s in IP '
          "or prefix length")], id="sloppy block is new"),
    pytest.param({"podSelector": BAD}, {"podSelector": BAD, "policyTypes": ["Egress"]},
        [], id="selector stays invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), POLICY_UPDATES)
def test_changes_of_policies_are_validated(old, new, expected):
    assert update_errors("networking.k8s.io/v1", "NetworkPolicy", policy(old), policy(new)) == expected
