"""Where a load balancer takes traffic in, as a service or an ingress says in its status."""

from apiserver.resources.columns.parts import items, text
from apiserver.wire.table import Tree


def of(tree: Tree) -> list[str]:
    """The address of each point, or its host name, each once, in order."""
    points = items(tree, "status", "loadBalancer", "ingress")
    return sorted({text(point, "ip") or text(point, "hostname") for point in points} - {""})
