"""What kubelets are made from: the values of flags, and what else runs beside them. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from mockube.client.component import ComponentContext
from mockube.component_base.local_ports import LocalPorts
from mockube.container_runtime.simulation_values import CLUSTER_DNS

from .installation import NOTHING_INSTALLED, Installation
from .node_pools.pool import NodePools


class KubeletSettings(Struct, frozen=True, kw_only=True):
    nodes: NodePools
    max_nodes: int
    """How many simulated nodes can have addresses."""
    stages: tuple[Path, ...]
    details: bool
    """Whether events, ids and final statuses of pods are written, which kwok does not."""
    address: str
    port: int
    """The address and the port of the kubelets' server; port 0 is a free one."""
    local_ports: LocalPorts | None
    """Where the address of the kubelets' server is noted, if objects must not contain it."""
    allow_host_access: bool
    process_images: Path | None
    """The file with the images that run as processes of this machine; None if all containers are simulated."""
    pod_network: str
    """Which network the pods of processes have."""
    pod_logs: Path | None
    """The folder of the logs of processes, which outlives this program; None for a temporary one."""
    unknown_programs: str
    """What becomes of programs that are not simulated, unless an annotation says otherwise."""
    fails_unknown_images: bool
    image_files: Sequence[Path]
    """Files that describe images of simulated containers, and the file of `process_images`, if it is one of them."""
    pack_images: Sequence[Mapping[str, Any]]
    """What packs say of the images of their kinds."""
    server: str
    """The address of the API server."""
    grace_period: float
    """The seconds without a renewal of the Lease until its node counts as unhealthy."""
    waits_for_pod_cidrs: bool
    """Whether a controller gives each node its pod CIDR."""
    has_root_ca: bool
    """Whether a controller writes the ConfigMap `kube-root-ca.crt` of each namespace."""
    attaches_volumes: bool
    """Whether a controller attaches volumes."""
    installation: Installation = NOTHING_INSTALLED
    cluster_dns: str = CLUSTER_DNS
    """The address of the cluster's name server."""
    balancers: str = ""
    """The range of the addresses of load balancers."""


class KubeletContext(ComponentContext, frozen=True, kw_only=True):
    """The dependencies of the runnables of simulated nodes, which share some values."""

    settings: KubeletSettings
