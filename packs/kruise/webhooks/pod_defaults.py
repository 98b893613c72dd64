"""The defaults of pod and claim templates in OpenKruise's workloads: fewer than in Kubernetes' own workloads.

OpenKruise calls some of upstream's functions, not the generated ones that call all. So a template has no defaults of most
volume types, of the volume mode of claims, or of gRPC probes, and the old name of the service account is not copied.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.defaults import Literals, round_up
from mockube.apiserver.kinds.core.pod.defaults import pull_policy

_POD: Final[Literals] = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
}
_MESSAGE: Final[Literals] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE: Final[Literals] = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_HTTP: Final[Literals] = {"path": "/", "scheme": "HTTP"}
_VOLUMES: Final[dict[str, Literals]] = {
    "hostPath": {"type": ""},
    "secret": {"defaultMode": 0o644},
    "configMap": {"defaultMode": 0o644},
    "downwardAPI": {"defaultMode": 0o644},
    "projected": {"defaultMode": 0o644},
}


def set_pod_defaults(spec: Tree) -> None:
    """Set the defaults of a pod spec in normal form."""
    _fill(spec, _POD)
    spec.setdefault("securityContext", {})
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for container in spec.get("initContainers") or ():
        _fill(container, {"imagePullPolicy": pull_policy(container.get("image", ""))}, _MESSAGE)
    for container in spec.get("containers") or ():
        # An update in place may keep the tag of an image.
        _fill(container, {"imagePullPolicy": "Always"}, _MESSAGE)
    for container in _containers(spec):
        _default_parts(container)
    round_up(spec.get("overhead") or {})


def set_claim_defaults(claim: Tree) -> None:
    """Set the defaults of a claim template in normal form."""
    claim.setdefault("status", {}).setdefault("phase", "Pending")
    resources = claim.get("spec", {}).get("resources") or {}
    for amounts in (resources.get("limits"), resources.get("requests"), claim["status"].get("capacity")):
        round_up(amounts or {})


def _fill(tree: Tree, *tables: Literals) -> None:
    for table in tables:
        for name, value in table.items():
            tree.setdefault(name, value)


def _containers(spec: Tree) -> Iterator[Tree]:
    names = ("initContainers", "containers", "ephemeralContainers")
    return chain.from_iterable(spec.get(name) or () for name in names)


def _default_parts(container: Tree) -> None:
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        _default_reference(variable.get("valueFrom"))
    resources = container.get("resources") or {}
    for name in ("limits", "requests"):
        round_up(resources.get(name) or {})
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is not None:
            _fill(probe, _PROBE)
            _default_request(probe)
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        _default_request(lifecycle.get(name))


def _default_request(action: Any) -> None:
    if action and action.get("httpGet") is not None:
        _fill(action["httpGet"], _HTTP)


def _default_reference(source: Any) -> None:
    """Set the version of a reference to a field of the pod."""
    if source and source.get("fieldRef") is not None:
        source["fieldRef"].setdefault("apiVersion", "v1")


def _default_volume(volume: Tree) -> None:
    if len(volume) == 1:  # it has a name alone
        volume["emptyDir"] = {}
    for name, table in _VOLUMES.items():
        if volume.get(name) is not None:
            _fill(volume[name], table)
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        _default_reference(item)
    for source in (volume.get("projected") or {}).get("sources") or ():
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            _default_reference(item)
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
