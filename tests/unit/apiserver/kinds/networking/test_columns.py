"""Printer columns of Ingresses, NetworkPolicies, IPAddresses and EndpointSlices."""

import pytest

from tests.support.server.printed_columns import printed_cells

NETWORKING = "networking.k8s.io"
DISCOVERY = "discovery.k8s.io"


def rules(*hosts):
    return [{"host": host} if host else {} for host in hosts]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "*", id="no rules"),
        pytest.param({"rules": rules("", "")}, "*", id="no hosts"),
        pytest.param({"rules": rules("a", "", "b")}, "a,b", id="two hosts"),
        pytest.param({"rules": rules("a", "b", "c")}, "a,b,c", id="three hosts"),
        pytest.param({"rules": rules("a", "b", "c", "d", "e")}, "a,b,c + 2 more...", id="five hosts"),
        pytest.param(
            {"rules": rules("a", "", "b", "c", "")}, "a,b,c + 2 more...", id="rules, not hosts, are counted"
        ),
    ],
)
def test_ingress_hosts_column(spec, expected):
    assert printed_cells(NETWORKING, "Ingress", {"spec": spec})["Hosts"] == expected


def test_ingress_columns():
    tree = {
        "spec": {"ingressClassName": "nginx", "tls": [{}]},
        "status": {
            "loadBalancer": {"ingress": [{"hostname": "a-very-long-name.example.com"}, {"ip": "9.9.9.9"}]}
        },
    }
    address = "9.9.9.9,a-very-long-name.example.com"
    assert list(printed_cells(NETWORKING, "Ingress", tree).values()) == [
        "x",
        "nginx",
        "*",
        address,
        "80, 443",
        "5m",
    ]
    assert list(printed_cells(NETWORKING, "Ingress", {}).values()) == ["x", "<none>", "*", "", "80", "5m"]


@pytest.mark.parametrize(
    ("kind", "tree", "expected"),
    [
        pytest.param("IngressClass", {}, ["x", "", "<none>", "5m"], id="empty ingress class"),
        pytest.param(
            "IngressClass",
            {
                "metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
                "spec": {"controller": "c", "parameters": {"apiGroup": "g.io", "kind": "P", "name": "n"}},
            },
            ["x (default)", "c", "P.g.io/n", "5m"],
            id="default class",
        ),
        pytest.param(
            "IngressClass",
            {"spec": {"parameters": {"kind": "P", "name": "n"}}},
            ["x", "", "P/n", "5m"],
            id="core kind",
        ),
        pytest.param(
            "NetworkPolicy", {"spec": {"podSelector": {}}}, ["x", "<none>", "5m"], id="policy for all"
        ),
        pytest.param(
            "NetworkPolicy",
            {"spec": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}},
            ["x", "!a", "5m"],
            id="policy for some",
        ),
        pytest.param(
            "ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/8", "fd::/64"]}}, ["x", "10.0.0.0/8,fd::/64", "5m"]
        ),
    ],
)
def test_networking_columns(kind, tree, expected):
    assert list(printed_cells(NETWORKING, kind, tree).values()) == expected


@pytest.mark.parametrize(
    ("ports", "endpoints", "expected"),
    [
        pytest.param([], [], ("<unset>", "<unset>"), id="empty"),
        pytest.param(
            [{"port": 80}, {"name": "dns"}, {}], [{"addresses": ["1.1.1.1"]}], ("80,dns,*", "1.1.1.1")
        ),
        pytest.param([{"name": ""}], [{}], ("<unset>", "<unset>"), id="empty name"),
        pytest.param(
            [{"port": number} for number in range(5)],
            [{"addresses": ["1", "2"]}, {"addresses": ["3", "4"]}],
            ("0,1,2 + 2 more...", "1,2,3 + 1 more..."),
            id="more than three",
        ),
    ],
)
def test_endpoint_slice_columns(ports, endpoints, expected):
    tree = {"addressType": "IPv4", "ports": ports, "endpoints": endpoints}
    assert list(printed_cells(DISCOVERY, "EndpointSlice", tree).values()) == ["x", "IPv4", *expected, "5m"]
