"""NetworkPolicies allow and deny what Kubernetes' own tests state."""

from pathlib import Path

import pytest
import yaml

from mockube.network.policies import is_allowed
from mockube.network.view import Peer, peer_of
from tests.support.network_cluster import NetworkCluster

CASES = yaml.load(Path(__file__).with_name("policies.yaml").read_text(), yaml.CSafeLoader)
PORTS = [
    {"name": f"serve-{port}-{protocol.lower()}", "containerPort": port, "protocol": protocol}
    for port in (80, 81)
    for protocol in ("TCP", "UDP", "SCTP")
]


def cluster_of(case):
    cluster = NetworkCluster(namespaces=("x", "y", "z"))
    for name, labels in cluster.namespaces.items():
        labels.update({"ns": name}, **case.get("namespaceLabels", {}).get(name, {}))
    addresses = {}
    for number, text in enumerate(case["pods"]):
        namespace, name = text.split("/")
        labels = {"pod": name} | case.get("podLabels", {}).get(text, {})
        addresses[text] = f"10.244.0.{number + 1}"
        cluster.add_pod(name, addresses[text], namespace, labels=labels, ports=PORTS)
    for spec in case["policies"]:
        metadata = {"name": "p", "namespace": spec["ns"]}
        cluster.network_policies.append({"metadata": metadata, "spec": _with_addresses(spec, addresses)})
    return cluster


def _with_addresses(tree, addresses):
    """Replace the names of pods by their addresses."""
    if isinstance(tree, dict):
        return {key: _with_addresses(value, addresses) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_with_addresses(value, addresses) for value in tree]
    return f"{addresses[tree]}/32" if isinstance(tree, str) and tree in addresses else tree


def expected_verdicts(case, verdicts):
    table = {(source, target): True for source in case["pods"] for target in case["pods"]}
    for source, target, allowed in verdicts:
        for pair in table:
            if _matches(source, pair[0]) and _matches(target, pair[1]):
                table[pair] = allowed
    return table | {(pod, pod): True for pod in case["pods"]}


def _matches(pattern, pod):
    return pattern in ("*", pod) or (pattern.endswith("/*") and pod.startswith(pattern[:-1]))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_policies_have_verdicts_of_kubernetes_tests(case):
    cluster = cluster_of(case)
    peers = dict(zip(case["pods"], map(peer_of, cluster.pods), strict=True))
    for check in case["checks"]:
        port, protocol = check["port"], check.get("protocol", "TCP")
        verdicts = {
            (source, target): is_allowed(cluster, peers[source], peers[target], port, protocol)
            for source in peers
            for target in peers
        }
        assert verdicts == expected_verdicts(case, check["verdicts"])


def test_policies_do_not_apply_to_pods_in_the_network_of_their_node():
    cluster = NetworkCluster()
    cluster.network_policies.append({"metadata": {"namespace": "default"}, "spec": {"podSelector": {}}})
    hosted = cluster.add_pod("a", "172.18.0.2", hostNetwork=True, nodeName="node-1")
    other = cluster.add_pod("b", "10.244.0.2")
    node = Peer(address="172.18.0.3", node="node-2")
    assert is_allowed(cluster, node, peer_of(hosted), 80)
    assert not is_allowed(cluster, peer_of(hosted), peer_of(other), 80)


def test_pod_and_its_node_reach_each_other_whatever_policies_say():
    cluster = NetworkCluster()
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    cluster.network_policies.append({"metadata": {"namespace": "default"}, "spec": spec})
    pod = peer_of(cluster.add_pod("a", "10.244.0.1", nodeName="node-1"))
    hosted = peer_of(cluster.add_pod("b", "172.18.0.1", hostNetwork=True, nodeName="node-1"))
    own, other = (Peer(address=f"172.18.0.{number}", node=f"node-{number}") for number in (1, 2))
    both = [
        is_allowed(cluster, *ends, 80) for node in (own, hosted, other) for ends in ((pod, node), (node, pod))
    ]
    assert both == [True, True, True, True, False, False]


def test_nodes_are_selected_by_address_only():
    cluster = NetworkCluster()
    pod = cluster.add_pod("a", "10.244.0.1")
    rule = {"from": [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "172.18.0.0/24"}}]}
    spec = {"podSelector": {}, "ingress": [rule]}
    cluster.network_policies.append({"metadata": {"namespace": "default"}, "spec": spec})
    assert is_allowed(cluster, Peer(address="172.18.0.2"), peer_of(pod), 80)
    assert not is_allowed(cluster, Peer(address="172.19.0.2"), peer_of(pod), 80)
