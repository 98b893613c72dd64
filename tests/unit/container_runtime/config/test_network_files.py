"""The hosts and resolver files of a container match those of upstream's kubelet."""

import pytest

from mockube.container_runtime.config.environment import hostname_of
from mockube.container_runtime.config.network_files import hosts_file, resolver_file

CLUSTER = (
    "search n.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n"
)


def pod(**spec):
    return {
        "metadata": {"name": "web", "namespace": "n"},
        "spec": {"nodeName": "node-1", **spec},
        "status": {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]},
    }


@pytest.mark.parametrize(
    ("spec", "end"),
    [
        ({}, "fe00::2\tip6-allrouters\n10.1.2.3\tweb\n"),
        ({"hostname": "a"}, "\n10.1.2.3\ta\n"),
        (
            {"hostname": "a", "subdomain": "s", "setHostnameAsFQDN": True},
            "\n10.1.2.3\ta.s.n.svc.cluster.local\ta\n",
        ),
        ({"hostnameOverride": "b.c", "subdomain": "s"}, "\n10.1.2.3\tb.c\n"),
        ({"hostname": "a", "subdomain": "s"}, "\n10.1.2.3\ta.s.n.svc.cluster.local\ta\n"),
        (
            {
                "hostAliases": [
                    {"ip": "1.2.3.4", "hostnames": ["x", "y"]},
                    {"ip": "5.6.7.8", "hostnames": ["z"]},
                ]
            },
            "\tweb\n\n# Entries added by HostAliases.\n1.2.3.4\tx\ty\n5.6.7.8\tz\n",
        ),
    ],
)
def test_hosts_file(spec, end):
    text = hosts_file(pod(**spec))
    assert text.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert text.endswith(end)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, CLUSTER),
        ({"hostNetwork": True}, "search .\nnameserver 127.0.0.1\n"),
        ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, CLUSTER),
        ({"dnsPolicy": "Default"}, "search .\nnameserver 127.0.0.1\n"),
        (
            {
                "dnsPolicy": "None",
                "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["resolv.conf.local"]},
            },
            "search resolv.conf.local\nnameserver 1.1.1.1\n",
        ),
        (
            {
                "dnsConfig": {
                    "nameservers": ["10.0.0.10", "1.1.1.1"],
                    "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}],
                }
            },
            CLUSTER.replace("options ndots:5", "nameserver 1.1.1.1\noptions ndots:2 rotate"),
        ),
        (
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": [f"1.1.1.{n}" for n in range(9)]}},
            "nameserver 1.1.1.0\nnameserver 1.1.1.1\nnameserver 1.1.1.2\n",
        ),
    ],
)
def test_resolver_file(spec, text):
    assert resolver_file(pod(**spec)) == text


def test_resolver_file_names_the_name_server_of_the_cluster():
    assert "nameserver 10.96.0.10\n" in resolver_file(pod(), "10.96.0.10")


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"setHostnameAsFQDN": True, "subdomain": "s"}, "web.s.n.svc.cluster.local"),
        ({"setHostnameAsFQDN": True}, "web"),
        ({"subdomain": "s"}, "web"),
        ({"subdomain": "s", "setHostnameAsFQDN": True, "hostNetwork": True}, "node-1"),
    ],
)
def test_host_name(spec, name):
    assert hostname_of(pod(**spec)) == name
