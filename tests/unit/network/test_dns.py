"""Cluster DNS answers as CoreDNS' plugin `kubernetes`."""

import pytest

from mockube.network.dns import resolve
from tests.support.network_cluster import NetworkCluster

SVC = "svc.cluster.local"


@pytest.fixture
def cluster():
    cluster = NetworkCluster(namespaces=("default", "dev"))
    http = [{"name": "http", "port": 80, "to": 8080}]
    cluster.add_service(
        "web", clusterIP="10.0.0.7", clusterIPs=["10.0.0.7", "fd00::7"], ports=http, endpoints=["10.244.0.5"]
    )
    members = [
        {"addresses": ["10.244.0.1"], "hostname": "db-0"},
        {"addresses": ["10.244.0.2"], "hostname": "db-1", "conditions": {"ready": False}},
        {"addresses": ["10.244.0.3"]},
    ]
    cluster.add_service("db", clusterIP="None", ports=[{"name": "sql", "port": 5432}], endpoints=members)
    cluster.add_service("empty", clusterIP="None")
    cluster.add_service("alias", type="ExternalName", externalName=f"web.default.{SVC}", ports=[])
    cluster.add_service("far", type="ExternalName", externalName="db.example.com", ports=[])
    return cluster


@pytest.mark.parametrize(
    ("name", "kind", "values"),
    [
        (f"web.default.{SVC}", "A", ["10.0.0.7"]),
        (f"WEB.default.{SVC}.", "A", ["10.0.0.7"]),
        (f"web.default.{SVC}", "AAAA", ["fd00::7"]),
        (f"web.default.{SVC}", "SRV", [f"0 100 80 web.default.{SVC}."]),
        (f"_http._tcp.web.default.{SVC}", "SRV", [f"0 100 80 web.default.{SVC}."]),
        (f"10-244-0-5.web.default.{SVC}", "A", ["10.244.0.5"]),
        (f"db.default.{SVC}", "A", ["10.244.0.1", "10.244.0.3"]),
        (f"db-0.db.default.{SVC}", "A", ["10.244.0.1"]),
        (f"10-244-0-3.db.default.{SVC}", "A", ["10.244.0.3"]),
        (
            f"_sql._tcp.db.default.{SVC}",
            "SRV",
            [f"0 100 5432 db-0.db.default.{SVC}.", f"0 100 5432 10-244-0-3.db.default.{SVC}."],
        ),
        ("1-2-3-4.default.pod.cluster.local", "A", ["1.2.3.4"]),
        ("dns-version.cluster.local", "TXT", ["1.1.0"]),
        ("7.0.0.10.in-addr.arpa", "PTR", [f"web.default.{SVC}."]),
        ("1.0.244.10.in-addr.arpa", "PTR", [f"db-0.db.default.{SVC}."]),
        (f"alias.default.{SVC}", "A", ["10.0.0.7"]),
    ],
)
def test_name_has_records(cluster, name, kind, values):
    answer = resolve(cluster, name, kind)
    assert answer.exists
    assert answer.values(kind) == values


@pytest.mark.parametrize(
    "name",
    [
        f"none.default.{SVC}",
        f"web.none.{SVC}",
        f"db-1.db.default.{SVC}",
        f"empty.default.{SVC}",
        f"_none._tcp.web.default.{SVC}",
        "1-2-3-4.none.pod.cluster.local",
        "x.y.z.w.cluster.local",
        "9.9.9.9.in-addr.arpa",
        "x.in-addr.arpa",
        "nosuchservice",
        "web.defualt",
        "web.dev",
    ],
)
def test_name_is_unknown(cluster, name):
    assert not resolve(cluster, name).exists


@pytest.mark.parametrize("name", ["default.svc.cluster.local", "svc.cluster.local", "cluster.local"])
def test_name_above_services_exists_without_records(cluster, name):
    answer = resolve(cluster, name)
    assert answer.exists
    assert not answer.records


def test_external_name_is_alias(cluster):
    answer = resolve(cluster, f"alias.default.{SVC}")
    assert answer.values("CNAME") == [f"web.default.{SVC}."]


def test_names_of_the_internet_are_outside(cluster):
    assert resolve(cluster, "example.com").is_outside
    assert resolve(cluster, f"far.default.{SVC}").is_outside


def test_alias_to_itself_ends(cluster):
    cluster.add_service("loop", type="ExternalName", externalName=f"loop.default.{SVC}", ports=[])
    assert resolve(cluster, f"loop.default.{SVC}").values("A") == []
