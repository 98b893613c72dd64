"""A valid Service with all fields that validation requires."""

from typing import Any, Final

SERVICE: Final[dict[str, Any]] = {
    "metadata": {"name": "a", "namespace": "ns"},
    "spec": {
        "type": "ClusterIP",
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    },
}
