"""Defaults of Services and Endpoints. IP families come with the addresses, when those are allocated."""

from typing import Final

from apiserver.defaults.table import FILLED_BY_OWNER, Tree, of

_AFFINITY_SECONDS: Final = 10800
_WITH_NODE_PORTS: Final = frozenset({"LoadBalancer", "NodePort"})
_WITH_CLUSTER_IP: Final = _WITH_NODE_PORTS | {"ClusterIP"}


def _session_affinity_config(spec: Tree) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        given = spec.get("sessionAffinityConfig", {}).get("clientIP", {})
        if "timeoutSeconds" not in given:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}


def _traffic(spec: Tree) -> None:
    of_type = spec["type"]
    if of_type in _WITH_NODE_PORTS or (of_type == "ClusterIP" and "externalIPs" in spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if of_type in _WITH_CLUSTER_IP:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if of_type == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _target_port(port: Tree) -> None:
    if port["targetPort"] in (0, ""):
        port["targetPort"] = port["port"]


def _ingress_ip_mode(service: Tree) -> None:
    if service["spec"].get("type") == "LoadBalancer":
        for ingress in service["status"]["loadBalancer"].get("ingress", ()):
            if "ip" in ingress:
                ingress.setdefault("ipMode", "VIP")


DEFAULTS: Final = of(
    "io.k8s.api.core.v1",
    {
        "Service": _ingress_ip_mode,
        "ServiceSpec": (
            {"type": "ClusterIP", "sessionAffinity": "None"},
            _session_affinity_config,
            _traffic,
        ),
        "ServicePort": _target_port,
        "LoadBalancerIngress": FILLED_BY_OWNER,
        "EndpointPort": {"protocol": "TCP"},
    },
)
