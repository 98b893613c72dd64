"""Defaults of pods, pod templates, and the containers in them."""

from collections.abc import Iterator
from typing import Final

from apiserver.defaults import pod_resources
from apiserver.defaults.image import pull_policy
from apiserver.defaults.table import FILLED_BY_OWNER, Tree, of


def _pod(pod: Tree) -> None:
    """What is filled in for a pod, but not for a template of pods."""
    spec = pod["spec"]
    pod_resources.fill(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for port in _given_ports(spec):
            port.setdefault("hostPort", port["containerPort"])


def _given_ports(spec: Tree) -> Iterator[Tree]:
    for container in pod_resources.containers(spec):
        yield from (port for port in container.get("ports", ()) if port["containerPort"])


def _image_pull_policy(container: Tree) -> None:
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))


_CONTAINER: Final = (
    {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    _image_pull_policy,
)

DEFAULTS: Final = of(
    "io.k8s.api.core.v1",
    {
        "Pod": _pod,
        "PodSpec": {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
        "Container": _CONTAINER,
        "EphemeralContainer": _CONTAINER,
        "ResourceRequirements": FILLED_BY_OWNER,
        "ObjectFieldSelector": {"apiVersion": "v1"},
        "Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
        "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    },
)
