"""The defaults of pods, pod templates and containers, and the changes of pods by upstream's internal type.

A container's requests default to its limits. A pod may have CPU, memory and huge pages of its own: `pod_level.py` has
their defaults. The pull policy of an image, in a container or as a volume, depends on its
reference, which is parsed as far as necessary.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final

from mockube.apimachinery.images import InvalidImage, parse_image
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.defaults import FILLED_BY_OWNER, Table, defaults_table

from .pod_level import fill_older_pod_level


def _pod(pod: Tree) -> None:
    """Set the defaults of pods that pod templates do not have."""
    spec = pod["spec"]
    fill_requests(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for port in _given_ports(spec):
            port.setdefault("hostPort", port["containerPort"])


def _older_pod(pod: Tree) -> None:
    """Set the defaults as minors before 1.37 do: those of the pod's own resources as well."""
    _pod(pod)
    fill_older_pod_level(pod["spec"])


def _given_ports(spec: Tree) -> Iterator[Tree]:
    for container in containers(spec):
        yield from (port for port in container.get("ports", ()) if port["containerPort"])


def _image_pull_policy(container: Tree) -> None:
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))


def _image_volume_pull_policy(source: Tree) -> None:
    source.setdefault("pullPolicy", pull_policy(source.get("reference", "")))


_CONTAINER: Final = (
    {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    _image_pull_policy,
)

DEFAULTS: Final = defaults_table(
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
        "ImageVolumeSource": _image_volume_pull_policy,
        "ResourceRequirements": FILLED_BY_OWNER,
        "ObjectFieldSelector": {"apiVersion": "v1"},
        "Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
        "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    },
)


OLDER_DEFAULTS: Final[Table] = {**DEFAULTS, **defaults_table("io.k8s.api.core.v1", {"Pod": _older_pod})}
"""The defaults of minors before 1.37."""

_ACTIONS: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")


def _pod_with_protocol(pod: Tree) -> None:
    """Set the defaults of pods, and the protocol of HTTP requests to their containers."""
    _pod(pod)
    spec = pod["spec"]
    for container in every_container(spec):
        lifecycle = container.get("lifecycle") or {}
        actions = [container.get(name) for name in _ACTIONS] + [lifecycle.get(name) for name in _HOOKS]
        for action in actions:
            if action and action.get("httpGet") is not None:
                action["httpGet"].setdefault("protocol", "HTTP1")


DEFAULTS_WITH_PROTOCOL: Final[Table] = {
    **DEFAULTS,
    **defaults_table("io.k8s.api.core.v1", {"Pod": _pod_with_protocol}),
}
"""The defaults of pods if HTTP requests to containers have a protocol."""

# --- the pull policy that the reference of an image implies


def pull_policy(image: str) -> str:
    """Return `Always` for the tag `latest`, the default without tag and digest. An invalid name has no tag."""
    return _usual_policy(image) if len(image) <= _USUAL_LENGTH else _policy(image)


def _policy(image: str) -> str:
    try:
        reference = parse_image(image)
    except InvalidImage:
        return "IfNotPresent"
    latest = reference.tag == "latest" or not (reference.tag or reference.digest)
    return "Always" if latest else "IfNotPresent"


# Few images are used many times. A long text is rare, and would fill the cache.
_USUAL_LENGTH: Final = 255
_usual_policy = lru_cache(maxsize=4096)(_policy)


# --- the requests of containers


def containers(spec: Mapping[str, Any]) -> Iterator[Tree]:
    """Yield containers and init containers, without ephemeral containers."""
    return chain(spec["containers"] or (), spec.get("initContainers", ()))


def fill_requests(spec: Tree) -> None:
    """Set the default requests of containers."""
    for container in containers(spec):
        if requests := _requests(container["resources"]):
            container["resources"]["requests"] = dict(sorted(requests.items()))


def _requests(resources: Tree) -> Mapping[str, str]:
    limits: Mapping[str, str] = resources.get("limits", {})
    return limits and {**limits, **resources.get("requests", {})}


# --- the internal type: fields with the same meaning have equal values


def agree_with_list(section: str, single_field: str, list_field: str, wrap: str, tree: Tree) -> None:
    """Set both the single field and the list whose first item it is; the single field wins if they differ."""
    part = tree.get(section) or {}
    first, rest = part.get(single_field, ""), part.get(list_field) or []
    if rest and first in ("", _unwrap(rest[0], wrap)):
        first = _unwrap(rest[0], wrap)
    elif first:
        rest = [{wrap: first} if wrap else first]
    if first:
        tree[section] = part | {single_field: first, list_field: rest}


def _unwrap(element: object, wrap: str) -> object:
    return element.get(wrap, "") if wrap and isinstance(element, dict) else element


def name_account(path: Sequence[str], tree: Tree) -> None:
    """Set `serviceAccountName` of the pod spec at a path and its old name `serviceAccount` to the same value."""
    *parents, last = path
    outer = tree
    for step in parents:
        outer = outer.get(step) or {}
    spec = outer.get(last) or {}
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name and not spec.get("serviceAccountName") == spec.get("serviceAccount") == name:
        _replace(tree, path, spec | {"serviceAccountName": name, "serviceAccount": name})


def _replace(tree: Tree, path: Sequence[str], value: Tree) -> None:
    step, *rest = path
    if not rest:
        tree[step] = value
        return
    tree[step] = dict(tree[step])
    _replace(tree[step], rest, value)


def _limit_grace_period(pod: Tree) -> None:
    """Set a negative grace period of a pod, but not of a template, to one second."""
    spec = pod.get("spec") or {}
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        pod["spec"] = spec | {"terminationGracePeriodSeconds": 1}


INTERNAL_CHANGES: Final = (
    partial(name_account, ("spec",)),
    _limit_grace_period,
    partial(agree_with_list, "status", "podIP", "podIPs", "ip"),
)
INTERNAL_CHANGES_OF_TEMPLATE: Final = (partial(name_account, ("spec", "template", "spec")),)
"""The changes of a kind whose spec has a pod template."""
