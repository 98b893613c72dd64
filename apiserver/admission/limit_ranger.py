"""LimitRanger: the LimitRanges of a namespace fill in what pods ask for, and bound what pods and claims may."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from apimachinery import errors, meta, quantity
from apimachinery.groups import GroupResource
from apimachinery.quantity import Quantity
from apiserver.admission.limits import Amounts, amounts, pod_total
from apiserver.admission.plugin import CLAIM, CREATE, POD, UPDATE, WRITE, Plugin, forbidden
from apiserver.rest.attributes import Attributes, Operation, Target
from apiserver.rest.backend import Backend
from apiserver.storage.stored import Tree

LIMIT_RANGES = GroupResource("", "limitranges")
ANNOTATION = "kubernetes.io/limit-ranger"

RESIZE: Target = "", "pods", "resize"
CONTAINERS = (("containers", "container"), ("initContainers", "init container"))


class LimitRanger(Plugin):
    operations = WRITE
    about = frozenset({POD, RESIZE, CLAIM})

    def handles(self, operation: Operation, target: Target) -> bool:
        """A pod's resources can change only when it is created or resized, and a claim's whenever it is written."""
        only = {POD: CREATE, RESIZE: UPDATE}.get(target, WRITE)
        return operation in only and super().handles(operation, target)

    async def mutate(self, backend: Backend, attributes: Attributes) -> None:
        pod = attributes.object
        assert pod is not None
        if attributes.target != CLAIM:
            for limits in _limit_ranges(backend, attributes.namespace):
                _fill_in(pod, limits)

    async def validate(self, backend: Backend, attributes: Attributes) -> None:
        written = attributes.object
        assert written is not None
        check = _check_claim if attributes.target == CLAIM else _check_pod
        for limits in _limit_ranges(backend, attributes.namespace):
            wrong = [problem for limit in limits for problem in check(limit, written["spec"])]
            if wrong:
                raise forbidden(attributes, errors.aggregate(wrong))


def _limit_ranges(backend: Backend, namespace: str) -> Iterator[list[Tree]]:
    for stored in backend.all_seen(LIMIT_RANGES, namespace):
        yield stored.tree()["spec"].get("limits") or []


def _fill_in(pod: Tree, limits: list[Tree]) -> None:
    """Give containers the defaults of one LimitRange, and say so in an annotation."""
    defaults = {
        field: {
            name: amount
            for limit in limits
            if limit.get("type") == "Container"
            for name, amount in (limit.get(source) or {}).items()
        }
        for field, source in (("requests", "defaultRequest"), ("limits", "default"))
    }
    spec, filled = dict(pod["spec"]), list[str]()
    for field, kind in CONTAINERS:
        if spec.get(field):
            spec[field] = [_filled_in(container, defaults, kind, filled) for container in spec[field]]
    pod["spec"] = spec
    if filled:
        said = f"LimitRanger plugin set: {'; '.join(filled)}"
        pod["metadata"]["annotations"] = {**meta.annotations(pod), ANNOTATION: said}


def _filled_in(
    container: Tree, defaults: Mapping[str, Mapping[str, str]], kind: str, filled: list[str]
) -> Tree:
    resources = dict(container.get("resources", {}))
    for field, singular in (("requests", "request"), ("limits", "limit")):
        given = resources.get(field, {})
        missing = {name: amount for name, amount in defaults[field].items() if name not in given}
        if missing:
            resources[field] = dict(sorted({**given, **missing}.items()))
            filled.append(f"{', '.join(sorted(missing))} {singular} for {kind} {container['name']}")
    return container | {"resources": resources}


class _Asked(NamedTuple):
    """What is asked for of one resource, and what one limit allows."""

    resource: str
    kind: str
    enforced: Quantity
    request: Quantity | None
    limit: Quantity | None

    @property
    def bound(self) -> str:
        return f"{self.resource} usage per {self.kind} is {self.enforced}"


def _minimum(asked: _Asked) -> str:
    if asked.request is None:
        return f"minimum {asked.bound}.  No request is specified"
    if asked.request < asked.enforced:
        return f"minimum {asked.bound}, but request is {asked.request}"
    if asked.limit is not None and asked.limit < asked.enforced:
        return f"minimum {asked.bound}, but limit is {asked.limit}"
    return ""


def _maximum(asked: _Asked) -> str:
    if asked.limit is None:
        return f"maximum {asked.bound}.  No limit is specified"
    if asked.limit > asked.enforced:
        return f"maximum {asked.bound}, but limit is {asked.limit}"
    if asked.request is not None and asked.request > asked.enforced:
        return f"maximum {asked.bound}, but request is {asked.request}"
    return ""


def _maximum_request(asked: _Asked) -> str:
    """Of claims, which have requests only."""
    if asked.request is None:
        return f"maximum {asked.bound}.  No request is specified"
    if asked.request > asked.enforced:
        return f"maximum {asked.bound}, but request is {asked.request}"
    return ""


def _ratio(asked: _Asked) -> str:
    bound = f"{asked.resource} max limit to request ratio per {asked.kind} is {asked.enforced}"
    if not asked.request:
        return f"{bound}, but no request is specified or request is 0"
    if not asked.limit:
        return f"{bound}, but no limit is specified or limit is 0"
    ratio = asked.limit.number / asked.request.number
    return f"{bound}, but provided ratio is {float(ratio):f}" if ratio > asked.enforced.number else ""


Constraint = Callable[[_Asked], str]
_OF_PODS: Mapping[str, Constraint] = {"min": _minimum, "max": _maximum, "maxLimitRequestRatio": _ratio}
_OF_CLAIMS: Mapping[str, Constraint] = {"min": _minimum, "max": _maximum_request}


def _check_pod(limit: Tree, spec: Tree) -> Iterator[str]:
    if limit.get("type") == "Container":
        for field, _ in CONTAINERS:
            for container in spec.get(field) or ():
                resources = container.get("resources", {})
                yield from _problems(
                    limit, _OF_PODS, amounts(resources.get("requests")), amounts(resources.get("limits"))
                )
    elif limit.get("type") == "Pod":
        yield from _problems(limit, _OF_PODS, pod_total(spec, "requests"), pod_total(spec, "limits"))


def _check_claim(limit: Tree, spec: Tree) -> Iterator[str]:
    if limit.get("type") == "PersistentVolumeClaim":
        yield from _problems(limit, _OF_CLAIMS, amounts(spec.get("resources", {}).get("requests")), {})


def _problems(
    limit: Tree, constraints: Mapping[str, Constraint], requests: Amounts, limits: Amounts
) -> Iterator[str]:
    for field, constraint in constraints.items():
        for resource, enforced in sorted((limit.get(field) or {}).items()):
            asked = _Asked(
                resource,
                limit["type"],
                quantity.parse(enforced),
                requests.get(resource),
                limits.get(resource),
            )
            if problem := constraint(asked):
                yield problem
