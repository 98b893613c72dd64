"""What CoreDNS answers by its Corefile."""

import pytest

from mockube.network.coredns import NameServer, Query
from mockube.network.corefile import parse
from mockube.network.dns import Answer
from tests.support.network_cluster import NetworkCluster

WEB = "web.default.svc.cluster.local"


@pytest.fixture
def view():
    cluster = NetworkCluster()
    cluster.add_service("web", clusterIP="10.0.0.7")
    cluster.add_service("alias", type="ExternalName", externalName="host.example.org")
    cluster.add_pod("p", "10.244.1.5")
    return cluster


def ask(view, directives, name, record_type="A", *, forward=lambda *_: None, more=""):
    """Return the answer of a server with some directives for all names."""
    return NameServer(parse(f".:53 {{\n{directives}\n}}\n{more}", "C"), view, forward).answer(
        Query(name, record_type)
    )


def values(*arguments, **options):
    answer = ask(*arguments, **options)
    return [value for _, _, value in answer.records] if answer.exists else answer.code or "NXDOMAIN"


CLUSTER = "kubernetes cluster.local in-addr.arpa {\n  pods insecure\n  fallthrough in-addr.arpa\n}\nforward . /etc/resolv.conf"


def test_names_of_the_cluster_and_of_the_internet(view):
    assert values(view, CLUSTER, WEB) == ["10.0.0.7"]
    assert values(view, CLUSTER, "none.default.svc.cluster.local") == "NXDOMAIN"
    assert ask(view, CLUSTER, "example.org").is_outside
    assert values(view, CLUSTER, "7.0.0.10.in-addr.arpa", "PTR") == [f"{WEB}."]


def test_server_without_kubernetes_refuses_names_of_the_cluster(view):
    assert values(view, "errors", WEB) == "REFUSED"
    assert values(view, "forward . /etc/resolv.conf", WEB) == "NXDOMAIN"


HOSTS = "hosts {\n  10.1.2.3 a.example.org b.example.org\n  fallthrough\n}\n"


def test_hosts_have_their_addresses_and_leave_other_names(view):
    assert values(view, HOSTS + CLUSTER, "b.example.org") == ["10.1.2.3"]
    assert values(view, HOSTS + CLUSTER, WEB) == ["10.0.0.7"]
    assert values(view, HOSTS + CLUSTER, "3.2.1.10.in-addr.arpa", "PTR") == ["a.example.org."]
    without = HOSTS.replace("fallthrough", "ttl 60")
    assert values(view, without + CLUSTER, WEB) == "NXDOMAIN"


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (f"rewrite name db.example.org {WEB}", "db.example.org"),
        ("rewrite name suffix .example.org .default.svc.cluster.local", "web.example.org"),
        ("rewrite name substring example default", "web.example.svc.cluster.local"),
        ("rewrite stop name regex (.*)\\.in\\.(.*)\\.org {1}.{2}.svc.cluster.local", "web.in.default.org"),
        (
            "rewrite stop {\n name regex (.*)\\.my\\.local {1}.default.svc.cluster.local\n answer auto\n}",
            "web.my.local",
        ),
    ],
)
def test_rewritten_name_has_the_address_of_its_target(view, rule, name):
    answer = ask(view, f"{rule}\n{CLUSTER}", name)
    assert answer.records == ((name, "A", "10.0.0.7"),)


def test_alias_is_followed_in_other_blocks(view):
    stub = "example.org:53 {\n  hosts {\n    10.9.9.9 host.example.org\n  }\n}"
    assert values(view, CLUSTER, "alias.default.svc.cluster.local", more=stub) == [
        "host.example.org.",
        "10.9.9.9",
    ]


TEMPLATE = 'template IN A example.org {\n  match "^ip-(?P<last>[0-9]+)[.]"\n  answer "{{ .Name }} 60 IN A 10.0.0.{{ .Group.last }}"\n}\n'


def test_template_makes_records_of_names(view):
    assert values(view, TEMPLATE + CLUSTER, "ip-9.example.org") == ["10.0.0.9"]
    assert values(view, TEMPLATE + CLUSTER, "x.example.org") == "NXDOMAIN"
    assert values(view, TEMPLATE + CLUSTER, WEB) == ["10.0.0.7"]
    refused = "template ANY ANY bad.org {\n  rcode REFUSED\n}\n"
    assert values(view, refused + CLUSTER, "x.bad.org") == "REFUSED"


def test_stub_zone_is_forwarded_to_a_server_of_the_cluster(view):
    asked = []

    def forward(address, query, _):
        asked.append((address, query.name))
        return Answer(records=((query.name, "A", "10.5.5.5"),)) if address == "10.0.0.53" else None

    stub = "corp.example:53 {\n  forward . 10.0.0.53:53\n}\nlost.example:53 {\n  forward . 10.7.7.7\n}"
    assert values(view, CLUSTER, "x.corp.example", forward=forward, more=stub) == ["10.5.5.5"]
    assert values(view, CLUSTER, "x.lost.example", forward=forward, more=stub) == "SERVFAIL"
    assert asked == [("10.0.0.53", "x.corp.example"), ("10.7.7.7", "x.lost.example")]


@pytest.mark.parametrize(
    ("mode", "name", "expected"),
    [
        ("insecure", "10-244-9-9.default.pod.cluster.local", ["10.244.9.9"]),
        ("verified", "10-244-1-5.default.pod.cluster.local", ["10.244.1.5"]),
        ("verified", "10-244-9-9.default.pod.cluster.local", "NXDOMAIN"),
        ("disabled", "10-244-1-5.default.pod.cluster.local", "NXDOMAIN"),
    ],
)
def test_names_of_pods_follow_their_mode(view, mode, name, expected):
    assert values(view, f"kubernetes cluster.local {{\n  pods {mode}\n}}", name) == expected
