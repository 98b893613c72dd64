"""Validation of EndpointSlices and Endpoints."""

import pytest

from mockube.apiserver.kinds import kind_rules
from mockube.apiserver.kinds.served_kinds import kinds_of
from tests.support.field_rules import create_errors, update_errors

METADATA = {"name": "s", "namespace": "ns"}
ENDPOINT = {"addresses": ["10.0.0.1"]}


def endpoint_slice(**fields):
    return {"metadata": METADATA, "addressType": "IPv4", **fields}


def errors_of(fields):
    return create_errors("discovery.k8s.io/v1", "EndpointSlice", endpoint_slice(**fields))


def endpoint_errors(fields):
    texts = errors_of({"endpoints": [{**ENDPOINT, **fields}]})
    return [text.removeprefix("endpoints[0].") for text in texts]


def typed_errors(address_type, *addresses):
    return errors_of({"addressType": address_type, "endpoints": [{"addresses": [*addresses]}]})


def hints(**fields):
    return {"hints": fields}


def port_errors(*ports):
    return errors_of({"ports": [*ports]})


def port(**fields):
    return {"protocol": "TCP", "port": 80, **fields}


def subset_errors(fields):
    tree = {"metadata": METADATA, "subsets": [{"addresses": [{"ip": "10.0.0.1"}], **fields}]}
    return [text.removeprefix("subsets[0]") for text in create_errors("v1", "Endpoints", tree)]


SLICES = [
    pytest.param({}, [], id="no endpoints"),
    pytest.param({"addressType": ""}, ["addressType: Required value"], id="no type"),
    pytest.param({"addressType": "IPX", "endpoints": [{"addresses": ["a"]}]},
        ['addressType: Unsupported value: "IPX": supported values: "FQDN", "IPv4", "IPv6"'], id="unknown type"),
    pytest.param({"endpoints": [ENDPOINT] * 1000}, [], id="thousand endpoints"),
    pytest.param({"endpoints": [ENDPOINT] * 1001},
        ["endpoints: Too many: 1001: must have at most 1000 items"], id="more than thousand endpoints"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SLICES)
def test_slices_are_validated(change, expected):
    assert errors_of(change) == expected


ENDPOINTS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"addresses": []},
        ["addresses: Required value"], id="no addresses"),
    pytest.param({"addresses": ["10.0.0.1"] * 100}, [], id="hundred addresses"),
    pytest.param({"addresses": ["10.0.0.1"] * 101},
        ["addresses: Too many: 101: must have at most 100 items"], id="more than hundred addresses"),
    pytest.param({"nodeName": "a.b"}, [], id="node"),
    pytest.param({"nodeName": "A"},
        [('nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
          "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
          "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")],
        id="invalid node"),
    pytest.param({"hostname": "a"}, [], id="host name"),
    pytest.param({"hostname": "a.b"},
        ['hostname: Invalid value: "a.b": must not contain dots'], id="host name with a dot"),
    pytest.param(hints(forZones=[{"name": "a"}], forNodes=[{"name": "b"}]), [], id="hints"),
    pytest.param(hints(forZones=[{"name": str(number)} for number in range(8)]), [], id="eight zones"),
    pytest.param(hints(forZones=[{"name": str(number)} for number in range(9)]),
        ["hints.forZones: Too many: 9: must have at most 8 items"], id="nine zones"),
    pytest.param(hints(forZones=[{"name": "a"}, {"name": "a"}]),
        ['hints.forZones[1].name: Duplicate value: "a"'], id="zone twice"),
    pytest.param(hints(forZones=[{"name": "a b"}]),
        [('hints.forZones[0].name: Invalid value: "a b": a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid zone"),
    pytest.param(hints(forNodes=[{"name": str(number)} for number in range(9)]),
        ["hints.forNodes: Too many: 9: must have at most 8 items"], id="nine nodes"),
    pytest.param(hints(forNodes=[{"name": "a"}, {"name": "a"}]),
        ['hints.forNodes[1].name: Duplicate value: "a"'], id="node twice"),
    pytest.param(hints(forNodes=[{"name": "A"}]),
        [('hints.forNodes[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid node of hints"),
    pytest.param({"deprecatedTopology": {"a": "b"}}, [], id="topology"),
    pytest.param({"deprecatedTopology": {"a b": "c d"}},
        [("deprecatedTopology: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', "
          "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         ('deprecatedTopology: Invalid value: "c d": a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid topology"),
    pytest.param({"deprecatedTopology": {f"a{number}": "b" for number in range(17)}},
        ["deprecatedTopology: Too many: 17: must have at most 16 items"], id="seventeen labels of topology"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), ENDPOINTS)
def test_endpoints_are_validated(change, expected):
    assert endpoint_errors(change) == expected


ADDRESSES = [
    pytest.param(("IPv4", "10.0.0.1"), [], id="address"),
    pytest.param(("IPv6", "2001:db8::1"), [], id="address of version 6"),
    pytest.param(("IPv4", "2001:db8::1"),
        ['endpoints[0].addresses: Invalid value: "2001:db8::1": must be an IPv4 address'],
        id="version 6 among version 4"),
    pytest.param(("IPv6", "10.0.0.1"),
        ['endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address'], id="version 4 among version 6"),
    pytest.param(("IPv4", "a"),
        [('endpoints[0].addresses[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or '
          "2001:db8::ffff)")], id="invalid address"),
    pytest.param(("IPv4", "010.0.0.1"),
        ['endpoints[0].addresses[0]: Invalid value: "010.0.0.1": must not have leading 0s'], id="sloppy address"),
    pytest.param(("IPv6", "2001:DB8:0::1"),
        ['endpoints[0].addresses[0]: Invalid value: "2001:DB8:0::1": must be in canonical form ("2001:db8::1")'],
        id="another form of version 6"),
    pytest.param(("IPv6", "::ffff:10.0.0.1"),
        ['endpoints[0].addresses[0]: Invalid value: "::ffff:10.0.0.1": must not be an IPv4-mapped IPv6 address'],
        id="mapped address"),
    pytest.param(("IPv4", "127.0.0.1"),
        [('endpoints[0].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range '
          "(127.0.0.0/8, ::1/128)")], id="loopback"),
    pytest.param(("IPv6", "fe80::1"),
        [('endpoints[0].addresses[0]: Invalid value: "fe80::1": may not be in the link-local range '
          "(169.254.0.0/16, fe80::/10)")], id="link-local"),
    pytest.param(("FQDN", "a.example."), [], id="name"),
    pytest.param(("FQDN", ""), ["endpoints[0].addresses[0]: Required value"], id="no name"),
    pytest.param(("FQDN", "a"),
        [('endpoints[0].addresses[0]: Invalid value: "a": should be a domain with at least two segments '
          "separated by dots")], id="name of one segment"),
    pytest.param(("FQDN", "A.b"),
        [('endpoints[0].addresses[0]: Invalid value: "A.b": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid name"),
    pytest.param(("FQDN", "a" * 64 + ".b"),
        ['endpoints[0].addresses[0]: Invalid value: "' + "a" * 64 + '": must be no more than 63 characters'],
        id="name with a long segment"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), ADDRESSES)
def test_addresses_are_validated(change, expected):
    assert typed_errors(*change) == expected


PORTS = [
    pytest.param([port(), port(name="a")], [], id="ports"),
    pytest.param([port(name="A")],
        [('ports[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")], id="invalid name"),
    pytest.param([port(), port()], ['ports[1].name: Duplicate value: ""'], id="no name twice"),
    pytest.param([port(name="a"), port(name="a")], ['ports[1].name: Duplicate value: "a"'], id="name twice"),
    pytest.param([port(protocol="HTTP")],
        ['ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"'], id="unknown protocol"),
    pytest.param([{}],
        ['ports[0].protocol: Unsupported value: "": supported values: "SCTP", "TCP", "UDP"'], id="no protocol"),
    pytest.param([port(appProtocol="example.com/a")], [], id="application protocol"),
    pytest.param([port(appProtocol="a b")],
        [('ports[0].appProtocol: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid application protocol"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), PORTS)
def test_ports_are_validated(change, expected):
    assert port_errors(*change) == expected


CHANGES = [
    pytest.param({}, {"endpoints": [ENDPOINT]}, [], id="endpoints"),
    pytest.param({}, {"addressType": "IPv6"}, ["addressType: Invalid value: null: field is immutable"], id="type"),
    pytest.param({"endpoints": [{"addresses": ["127.0.0.1"]}]}, {"endpoints": [{"addresses": ["127.0.0.1"]}], "ports": [port(name="A")]},
        [('ports[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="endpoints stay invalid"),
    pytest.param({}, {"endpoints": [{"addresses": ["127.0.0.1"]}]},
        [('endpoints[0].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range '
          "(127.0.0.0/8, ::1/128)")], id="endpoints become invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_slices_are_validated(old, new, expected):
    assert (
        update_errors("discovery.k8s.io/v1", "EndpointSlice", endpoint_slice(**old), endpoint_slice(**new))
        == expected
    )


SUBSETS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"addresses": []},
        [": Required value: must specify `addresses` or `notReadyAddresses`"], id="no addresses"),
    pytest.param({"addresses": [], "notReadyAddresses": [{"ip": "::1"}]},
        [('.notReadyAddresses[0].ip: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, '
          "::1/128)")], id="addresses that are not ready"),
    pytest.param({"addresses": [{}]},
        ['.addresses[0].ip: Invalid value: "": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
         '.addresses[0].ip: Invalid value: "": must be a valid IP address'], id="no address"),
    pytest.param({"addresses": [{"ip": "010.0.0.1"}]},
        ['.addresses[0].ip: Invalid value: "010.0.0.1": must not have leading 0s'], id="sloppy address"),
    pytest.param({"addresses": [{"ip": "10.0.0.1", "hostname": "A", "nodeName": "B"}]},
        [('.addresses[0].hostname: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"),
         ('.addresses[0].nodeName: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="host name and node"),
    pytest.param({"ports": [port()]}, [], id="port"),
    pytest.param({"ports": [port(), port()]},
        [".ports[0].name: Required value",
         ".ports[1].name: Required value"], id="two ports without names"),
    pytest.param({"ports": [{"name": "A", "port": 0, "protocol": "HTTP", "appProtocol": "a b"}]},
        [('.ports[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"),
         ".ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
         '.ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
         ('.ports[0].appProtocol: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid port"),
    pytest.param({"ports": [port(protocol="")]}, [".ports[0].protocol: Required value"], id="no protocol"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SUBSETS)
def test_subsets_of_endpoints_are_validated(change, expected):
    assert subset_errors(change) == expected


@pytest.mark.parametrize(("minor", "count"), [("1.32", 0), ("1.33", 1)])
def test_form_of_ipv6_addresses_is_free_before_1_33(minor, count):
    kinds = kinds_of(minor)
    row = next(kind.resource for kind in kinds.all if kind.resource.name == "endpointslices")
    tree = endpoint_slice(addressType="IPv6", endpoints=[{"addresses": ["2001:db8:0::1"]}])
    assert len(kind_rules.check_create(row, tree, kinds)) == count
