"""Services and the pods behind them."""

THEN = "2030-01-01T00:00:00Z"


def service(*ports, **spec):
    return {
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "uid-web",
            "labels": {"team": "a"},
            "creationTimestamp": THEN,
        },
        "spec": {
            "selector": {"app": "web"},
            "clusterIP": "10.0.0.9",
            "ipFamilies": ["IPv4"],
            "ports": list(ports) or [{"port": 80, "targetPort": 8080, "protocol": "TCP"}],
            **spec,
        },
    }


def pod(number, *, ready=True, node="node-1", phase="Running", deleting=False, ports=(), ips=None, **spec):
    metadata = {
        "name": f"web-{number}",
        "namespace": "default",
        "uid": f"uid-{number}",
        "labels": {"app": "web"},
    }
    addresses = [f"10.244.0.{number}"] if ips is None else ips
    return {
        "metadata": metadata | ({"deletionTimestamp": THEN} if deleting else {}),
        "spec": {"containers": [{"name": "c", "ports": list(ports)}], "nodeName": node, **spec},
        "status": {
            "phase": phase,
            "podIPs": [{"ip": ip} for ip in addresses],
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": THEN}],
        },
    }
