"""The files about names that a kubelet writes into a container: /etc/hosts and /etc/resolv.conf. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.simulation_values import CLUSTER_DNS

from .environment import (
    CLUSTER_DOMAIN,
    hostname_of,
    qualified_name,
    short_hostname,
)

HOSTS: Final = "/etc/hosts"
_MAX_NAMESERVERS: Final = 3
_MAX_SEARCHES: Final = 32
"""The nameservers and search domains that a kubelet writes at most (pkg/apis/core/validation/validation.go)."""
_LOCAL: Final = """127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


def node_hosts_file(pod: ReadOnlyTree) -> str:
    """Return the file of the node on which a pod runs."""
    status, node = pod.get("status") or {}, pod["spec"].get("nodeName") or ""
    return f"{_LOCAL}{status['hostIP']}\t{node}\n" if status.get("hostIP") else _LOCAL


def hosts_file(pod: ReadOnlyTree) -> str:
    spec, status = pod["spec"], pod.get("status") or {}
    addresses = [entry["ip"] for entry in status.get("podIPs") or ()] or [status.get("podIP") or "127.0.0.1"]
    header = "# Kubernetes-managed hosts file.\n"
    if spec.get("hostNetwork"):
        header = "# Kubernetes-managed hosts file (host network).\n"
    entries = [f"{address}\t{_names(pod)}\n" for address in addresses]
    return "".join((header, _LOCAL, *entries, *_alias_lines(spec.get("hostAliases") or ())))


def _names(pod: ReadOnlyTree) -> str:
    name = hostname_of(pod) if pod["spec"].get("hostNetwork") else short_hostname(pod)
    full_name = qualified_name(pod)
    return f"{full_name}\t{name}" if full_name else name


def _alias_lines(aliases: Iterable[ReadOnlyTree]) -> Iterator[str]:
    lines = ["\t".join((alias["ip"], *(alias.get("hostnames") or ()))) for alias in aliases]
    if lines:
        yield "\n# Entries added by HostAliases.\n"
    for line in lines:
        yield f"{line}\n"


def resolver_file(
    pod: ReadOnlyTree, cluster_dns: str = CLUSTER_DNS, node_servers: Sequence[str] = ("127.0.0.1",)
) -> str:
    """Return resolv.conf by the pod's DNS policy and DNS config.

    `cluster_dns` is the address of the cluster's name server, `node_servers` are those of the pod's node: a simulated node has none.
    """
    spec = pod["spec"]
    policy, pod_config = spec.get("dnsPolicy") or "ClusterFirst", spec.get("dnsConfig") or {}
    servers, searches, options = list[str](), list[str](), dict[str, str]()
    if policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not spec.get("hostNetwork")):
        servers = [cluster_dns]
        searches = [
            f"{meta.namespace(pod)}.{CLUSTER_DOMAIN}",
            CLUSTER_DOMAIN,
            CLUSTER_DOMAIN.removeprefix("svc."),
        ]
        options = {"ndots": "5"}
    elif policy != "None":
        servers, searches = [*(node_servers or (cluster_dns,))], ["."]
    servers = [*dict.fromkeys((*servers, *(pod_config.get("nameservers") or ())))][:_MAX_NAMESERVERS]
    searches = [*dict.fromkeys((*searches, *(pod_config.get("searches") or ())))][:_MAX_SEARCHES]
    options |= {
        option["name"]: option.get("value") or ""
        for option in pod_config.get("options") or ()
        if option.get("name")
    }
    options_text = " ".join(f"{name}:{value}" if value else name for name, value in options.items())
    lines = (
        f"search {' '.join(searches)}" if searches else "",
        *(f"nameserver {server}" for server in servers),
        f"options {options_text}" if options_text else "",
    )
    return "".join(f"{line}\n" for line in lines if line)
