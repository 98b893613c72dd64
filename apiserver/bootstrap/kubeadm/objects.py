"""The objects that kubeadm creates when its API server is ready, and the default storage class. Pure, but for the data beside it."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.ip_addresses import dns_address
from mockube.apimachinery.kubeadm_releases import VERSIONS, differences
from mockube.apimachinery.timestamps import after, format_time
from mockube.apimachinery.tree import Tree
from mockube.component_base.version import version

DATA: Final = Path(__file__).with_name("objects.json")
"""The objects of the manifests beside it, which `python -m tools.kubeadm_objects` writes, by the name of the manifest."""
_STORAGE: Final = "storage"
PHASES: Final = ("configuration", "kube-proxy", "coredns", _STORAGE)
"""The manifests in the order in which they are created."""
_PLACE: Final = re.compile(r"\$\((\w+)\)")
_TOKEN_LIFETIME: Final = timedelta(hours=24)
_SIGNED: Final = frozenset({"kube-proxy", "kubelet-config"})
"""The ConfigMaps whose hash shows whether a user has changed them."""
_HASH: Final = "kubeadm.kubernetes.io/component-config.hash"
_KUBELET_CLIENT: Final = "kubeadm:apiserver-kubelet-client"


class ClusterFacts(Struct, frozen=True, kw_only=True):
    """What the objects depend on."""

    minor: str
    server: str
    """The address of the API server."""
    authority: bytes
    """Its CA certificate in PEM."""
    service_network: str
    pod_network: str
    token: tuple[str, str]
    """The id and the secret of the first bootstrap token."""
    now: datetime
    endpoint: str = ""
    """The address of a control plane of several nodes."""


def objects(facts: ClusterFacts, *, has_storage_class: bool = True) -> Iterator[Tree]:
    """Yield the objects to create."""
    values, new = _values(facts), differences(facts.minor)
    text = _PLACE.sub(lambda match: _escaped(values.get(match[1], match[0])), DATA.read_text())
    trees: Mapping[str, Sequence[Tree]] = msgspec.json.decode(text)
    for phase in PHASES if has_storage_class else PHASES[: PHASES.index(_STORAGE)]:
        for tree in trees[phase]:
            if meta.name(tree) == _KUBELET_CLIENT and not new.has_kubelet_client:
                continue
            if "data" in tree and meta.name(tree) in _SIGNED:
                tree["metadata"]["annotations"] = {_HASH: _hash_of(tree["data"])}
            for container in () if new.has_probe_ports else _containers(tree):
                _number_probe_ports(container)
            yield tree


def _escaped(text: str) -> str:
    """Return a text as it stands in a string of JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


def _containers(tree: Tree) -> Sequence[Tree]:
    template = (tree.get("spec") or {}).get("template") or {}
    containers: Sequence[Tree] = (template.get("spec") or {}).get("containers") or ()
    return containers


def _values(facts: ClusterFacts) -> Mapping[str, str]:
    new, dns = differences(facts.minor), dns_address(facts.service_network)
    is_new = new.has_new_configuration
    old_server = "\n  extraArgs:\n    authorization-mode: Node,RBAC\n  timeoutForControlPlane: 4m0s"
    validity = "caCertificateValidityPeriod: 87600h0m0s\ncertificateValidityPeriod: 8760h0m0s\n"
    cache = " {\n       disable success cluster.local\n       disable denial cluster.local\n    }"
    return {
        "API_SERVER": "{}" if is_new else old_server,
        "AUTHORITY": b64encode(facts.authority).decode(),
        "CACHE": cache if new.limits_cache else "",
        "CA_VALIDITY": validity if is_new else "",
        "COREDNS": VERSIONS[facts.minor].coredns,
        "CONTROL_PLANE_ENDPOINT": f"controlPlaneEndpoint: {facts.endpoint}\n" if facts.endpoint else "",
        "CRASH_LOOP": "crashLoopBackOff: {}\n" if new.has_scheduler_readiness else "",
        "DNS": dns,
        "ENCRYPTION": "encryptionAlgorithm: RSA-2048\n" if is_new else "",
        "EXPIRATION": format_time(after(facts.now, _TOKEN_LIFETIME)),
        "KUBEADM_API": "v1beta4" if is_new else "v1beta3",
        "POD_NETWORK": facts.pod_network,
        "PROXY": "proxy: {}\n" if is_new else "",
        "PROXY_MODE": "iptables" if new.has_proxy_mode else "",
        "SERVER": facts.server,
        "SERVICE_NETWORK": facts.service_network,
        "TOKEN_ID": facts.token[0],
        "TOKEN_SECRET": facts.token[1],
        "VERSION": f"v{version(facts.minor)}",
    }


def _hash_of(data: Mapping[str, str]) -> str:
    return f"sha256:{sha256(''.join(data[key] for key in sorted(data)).encode()).hexdigest()}"


def _number_probe_ports(container: Tree) -> None:
    """Let probes name numbers, as kubeadm did before it named the ports."""
    ports = container.get("ports") or ()
    numbers = {port["name"]: port["containerPort"] for port in ports if "probe" in port["name"]}
    for probe in ("livenessProbe", "readinessProbe") if numbers else ():
        container["ports"] = [port for port in ports if port["name"] not in numbers]
        get = container[probe]["httpGet"]
        get["port"] = numbers[get["port"]]
