"""Requests on objects with two long lists that refer to each other, and on Services with many node ports."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from benchmarks.hostile_kinds import Request

NAMESPACE = "/api/v1/namespaces/default"


def _object(kind: str, spec: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"apiVersion": "v1", "kind": kind, "metadata": {"name": "new"}, "spec": spec})


def _pod(container: Mapping[str, Any], **spec: Any) -> bytes:
    return _object("Pod", {"containers": [{"name": "c", "image": "i"} | container], **spec})


def _undeclared_claims(count: int) -> bytes:
    used = [{"name": f"used{number}"} for number in range(count)]
    declared = [{"name": f"declared{number}", "resourceClaimName": "r"} for number in range(count)]
    return _pod({"resources": {"claims": used}}, resourceClaims=declared)


def _mounts_and_devices(count: int) -> bytes:
    mounts = [{"name": f"m{number}", "mountPath": f"/m{number}"} for number in range(count)]
    devices = [{"name": f"d{number}", "devicePath": f"/d{number}"} for number in range(count)]
    return _pod({"volumeMounts": mounts, "volumeDevices": devices})


def _quota_with_scopes(count: int) -> bytes:
    hard = {f"count/a{number}.b": "1" for number in range(count)}
    return _object("ResourceQuota", {"hard": hard, "scopes": ["Terminating"] * count})


def _node_ports(count: int) -> bytes:
    ports = [{"name": f"p{number}", "port": number} for number in range(1, min(count, 65_535) + 1)]
    return _object("Service", {"type": "NodePort", "ports": ports})


def with_related_lists(size: int) -> Iterator[tuple[str, Request]]:
    cases = {
        "create a pod, claims that are not declared": ("pods", _undeclared_claims, 80),
        "create a pod, mounts and devices": ("pods", _mounts_and_devices, 80),
        "create a quota, limits and scopes": ("resourcequotas", _quota_with_scopes, 40),
        "create a service, node ports": ("services", _node_ports, 32),
    }
    for name, (plural, make, item_size) in cases.items():
        yield name, Request("POST", f"{NAMESPACE}/{plural}?dryRun=All", make(size // item_size))
