"""What `mockube up` publishes on this machine by default: node ports, load balancers and Ingresses of a cluster for this machine alone."""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Final

from mockube.clusters.named_cluster import ClusterFolder
from mockube.component_base.flags import boolean
from mockube.launch import NAME

_FLAG: Final = "Controller manager.publish"
_RANGE_FLAG: Final = "Controller manager.load-balancer-cidr"
_ADDRESS_FLAG: Final = "Controller manager.publish-address"
_FIRST_RANGE: Final = 10
_RANGES: Final = 240


def flags(
    values: Mapping[str, Sequence[str]], folder: ClusterFolder, address: str, nodes: int
) -> Sequence[str]:
    """Return the flags of the manager that `values`, those of the command, leave open.

    A server that other machines may reach publishes nothing by default. On Linux, each cluster has loopback addresses of its own for
    load balancers, so that two clusters may both have a port 80.
    """
    is_set = values.get(_FLAG)
    publishes = boolean(is_set[-1] or "true") if is_set else nodes > 0 and ip_address(address).is_loopback
    if not publishes:
        return ()
    chosen = [] if is_set else ["--publish=true"]
    addresses = values.get(_ADDRESS_FLAG) or ["127.0.0.1"]
    if not values.get(_RANGE_FLAG) and sys.platform == "linux" and ip_address(addresses[-1]).is_loopback:
        chosen.append(f"--load-balancer-cidr={load_balancer_range(folder.name)}")
    return chosen


def load_balancer_range(name: str) -> str:
    """Return the range of a cluster's load balancers, which depends on its name."""
    number = 0 if name == NAME else hashlib.sha256(name.encode()).digest()[0] % (_RANGES - 1) + 1
    return f"127.{_FIRST_RANGE + number}.0.0/16"


def note(flags_of_run: Sequence[str], command: str) -> str:
    """Return the line that says whether a cluster publishes something."""
    publish = [flag.partition("=")[2] for flag in flags_of_run if flag.partition("=")[0] == "--publish"]
    if publish and boolean(publish[-1] or "true"):
        return f"Services and Ingresses are served on this machine: `{command}` lists where."
    return "Services and Ingresses are not served on this machine; --publish does that."
