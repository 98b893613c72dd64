"""Which objects may have a problem, by their status: `why` is asked about these. It is cheap, and rather names too many."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import MALFORMED_OBJECT_ERRORS, ReadOnlyTree
from mockube.objects.health import is_healthy, pod_problem

from .recording import ObjectIdentity

_READINESS: Final = ("Ready", "Available", "Synced", "Healthy", "Reconciled")
"""Conditions of objects of all kinds that are False if something is wrong."""


_SERVICES: Final = "services"
_SLICES: Final = "endpointslices.discovery.k8s.io"
_SERVICE_LABEL: Final = "kubernetes.io/service-name"
_JOBS: Final = "jobs.batch"
_REQUESTS: Final = "certificatesigningrequests.certificates.k8s.io"


class Candidate(Struct, frozen=True, kw_only=True):
    """Objects of one owner in the same state, of which the first one is explained."""

    identity: ObjectIdentity
    tree: ReadOnlyTree
    others: Sequence[tuple[ObjectIdentity, ReadOnlyTree]] = ()

    @property
    def similar(self) -> Sequence[ObjectIdentity]:
        return [identity for identity, _ in self.others]

    def without_first(self) -> "Candidate | None":
        """Return the candidate without the object that is explained; None if there is no other one."""
        if not self.others:
            return None
        (identity, tree), *others = self.others
        return Candidate(identity=identity, tree=tree, others=others)


def candidates(objects: Mapping[str, Sequence[ReadOnlyTree]]) -> Sequence[Candidate]:
    """Return the objects that may have a problem: those whose state is usual for a while after the others.

    Owners come before what they own, those of users before those of the cluster, and pods without an owner after them.
    """
    served = _served(objects.get(_SLICES, ()))
    found = [
        (ObjectIdentity.of(resource, tree), tree)
        for resource, trees in objects.items()
        for tree in trees
        if _is_candidate(resource, tree) and not (resource == _SERVICES and _is_served(tree, served))
    ]
    unhealthy = {meta.uid(tree) for _, tree in found}
    owners = _Owners(objects)
    groups: dict[tuple[str, ...], list[tuple[ObjectIdentity, ReadOnlyTree]]] = {}
    for identity, tree in found:
        if identity.resource == "replicasets.apps" and owners.owner_of(tree) in unhealthy:
            continue  # its Deployment has the same cause
        groups.setdefault(_group_of(identity, tree), []).append((identity, tree))
    selected = []
    for members in groups.values():
        (identity, tree), *others = sorted(members, key=lambda member: member[0])
        selected.append(Candidate(identity=identity, tree=tree, others=others))
    return sorted(
        selected,
        key=lambda each: (
            _may_be_usual(each),
            _is_alone(each.tree),
            *owners.place_of(each.tree),
            each.identity,
        ),
    )


def _may_be_usual(candidate: Candidate) -> bool:
    """Return whether the state of an object is one of each that is at work."""
    tree, resource = candidate.tree, candidate.identity.resource
    if meta.is_deleting(tree):
        return False
    return resource == _REQUESTS or (resource == _JOBS and not conditions.is_true(tree, "Failed"))


def _is_alone(tree: ReadOnlyTree) -> bool:
    """Return whether an object is a pod without a controller, of which there may be more than can be explained."""
    return meta.kind(tree) == "Pod" and meta.controller_of(tree) is None


def _served(slices: Sequence[ReadOnlyTree]) -> Mapping[tuple[str, str], Collection[str]]:
    """Return the Services that have an endpoint which is ready, by namespace and name, with the names of the ports that these have."""
    served: dict[tuple[str, str], set[str]] = {}
    for tree in slices:
        if any((each.get("conditions") or {}).get("ready", True) for each in tree.get("endpoints") or ()):
            service = meta.namespace(tree), meta.labels(tree).get(_SERVICE_LABEL, "")
            served.setdefault(service, set()).update(port.get("name", "") for port in tree.get("ports") or ())
    return served


def _is_served(service: ReadOnlyTree, served: Mapping[tuple[str, str], Collection[str]]) -> bool:
    """Return whether each port of a Service has an endpoint that is ready."""
    names = served.get((meta.namespace(service), meta.name(service)))
    ports = service["spec"].get("ports") or ()
    return names is not None and all(port.get("name", "") in names for port in ports)


def _group_of(identity: ObjectIdentity, tree: ReadOnlyTree) -> tuple[str, ...]:
    """Return a key that objects share if one explanation is enough for them: pods of one owner in the same state."""
    owner = meta.controller_of(tree)
    if identity.resource != "pods" or owner is None:
        return identity
    return (identity.resource, identity.namespace, owner["uid"], pod_problem(tree))


class _Owners:
    """The owners of objects, for the order in which these are listed."""

    def __init__(self, objects: Mapping[str, Sequence[ReadOnlyTree]]) -> None:
        self._by_uid = {meta.uid(tree): tree for trees in objects.values() for tree in trees}

    def owner_of(self, tree: ReadOnlyTree) -> str:
        owner = meta.controller_of(tree)
        return "" if owner is None else owner["uid"]

    def place_of(self, tree: ReadOnlyTree) -> tuple[int, str, str, int]:
        """Return the rank of the namespace, the namespace, the name of the outermost owner, and how far that is."""
        namespace, depth = meta.namespace(tree), 0
        while depth < _MAX_DEPTH and (owner := self._by_uid.get(self.owner_of(tree))) is not None:
            tree, depth = owner, depth + 1
        return _rank(namespace), namespace, meta.name(tree), depth


_MAX_DEPTH: Final = 10


def _rank(namespace: str) -> int:
    return 1 if namespace.startswith("kube-") else 2 if not namespace else 0


def _is_candidate(resource: str, tree: ReadOnlyTree) -> bool:
    try:
        return _may_have_problem(resource, tree)
    except MALFORMED_OBJECT_ERRORS:
        return True


def _may_have_problem(resource: str, tree: ReadOnlyTree) -> bool:
    if meta.is_deleting(tree):
        return True
    rule = _RULES.get(resource)
    if rule is not None:
        return rule(tree)
    group = resource.partition(".")[2]
    is_custom = "." in group and not group.endswith(".k8s.io")
    return is_custom and any(conditions.is_false(tree, name) for name in _READINESS)


def _is_unhealthy(tree: ReadOnlyTree) -> bool:
    return not is_healthy(tree)


def _has_too_few_pods(tree: ReadOnlyTree) -> bool:
    status, spec = tree.get("status") or {}, tree.get("spec") or {}
    desired = spec.get("replicas", 1)
    updated = status.get("updatedReplicas", desired)
    return (
        desired != status.get("readyReplicas", 0)
        or updated != desired
        or conditions.is_false(tree, "Progressing")
    )


def _has_selector(tree: ReadOnlyTree) -> bool:
    return bool((tree.get("spec") or {}).get("selector"))


def _is_unfinished(tree: ReadOnlyTree) -> bool:
    spec = tree.get("spec") or {}
    return not spec.get("suspend") and not conditions.is_true(tree, "Complete")


def _is_not_decided(tree: ReadOnlyTree) -> bool:
    status = tree.get("status") or {}
    return not conditions.is_true(tree, "Approved") or not status.get("certificate")


_RULES: Final[Mapping[str, Callable[[ReadOnlyTree], bool]]] = {
    "pods": _is_unhealthy,
    "nodes": _is_unhealthy,
    "persistentvolumeclaims": _is_unhealthy,
    "deployments.apps": _has_too_few_pods,
    "statefulsets.apps": _has_too_few_pods,
    "replicasets.apps": _is_unhealthy,
    "replicationcontrollers": _is_unhealthy,
    "daemonsets.apps": _is_unhealthy,
    _JOBS: _is_unfinished,
    _SERVICES: _has_selector,
    "horizontalpodautoscalers.autoscaling": lambda tree: any(
        conditions.is_false(tree, name) for name in ("ScalingActive", "AbleToScale")
    ),
    _REQUESTS: _is_not_decided,
}


def unhealthy_containers(pod: ReadOnlyTree) -> Iterator[tuple[str, bool]]:
    """Yield the containers of a pod that are not healthy, and whether one has ended before, whose log is another one."""
    status = pod.get("status") or {}
    for name in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(name) or ():
            state = container.get("state") or {}
            has_failed = (state.get("terminated") or {}).get("exitCode", 0) != 0
            has_restarted = bool((container.get("lastState") or {}).get("terminated"))
            has_run = "running" in state or "terminated" in state
            is_init = name == "initContainerStatuses"
            if has_restarted:
                yield container["name"], True
            if has_failed or (has_run and not is_init and not container.get("ready")):
                yield container["name"], False
