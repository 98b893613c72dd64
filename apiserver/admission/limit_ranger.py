"""LimitRanger: the LimitRanges of a namespace default the requests of pods, and bound those of pods and claims."""

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from mockube.apimachinery import errors, meta, quantity, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, Target

from . import plugin
from .plugin import Plugin
from .pod_resources import Amounts, amounts, pod_total

LIMIT_RANGES = GroupResource("", "limitranges")
ANNOTATION = "kubernetes.io/limit-ranger"

RESIZE: Target = "", "pods", "resize"
_MAX_MILLI = (2**63 - 1) // 1000
"""The largest amount whose thousandths fit into 64 bits."""
MAX_PROBLEMS = 10_000
"""The number of problems that are collected; an error message contains fewer."""
MAX_FILLED = 3 << 20
"""The number of characters that limit ranges may add to a pod; the store accepts fewer."""
CONTAINERS = (("containers", "container"), ("initContainers", "init container"))


class LimitRanger(Plugin):
    operations = plugin.WRITE
    needs: GroupResource | None = LIMIT_RANGES
    targets = frozenset({plugin.POD, RESIZE, plugin.CLAIM})

    def handles(self, operation: Operation, target: Target) -> bool:
        return super().handles(operation, target) and operation in _LIMITED_TARGETS[target].operations

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        if _LIMITED_TARGETS[attributes.target].has_defaults:
            for limits in _limit_ranges(backend, attributes.namespace):
                await backend.run(attributes.context, _set_defaults, pod, limits)

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        written = attributes.object
        assert written is not None
        check = _LIMITED_TARGETS[attributes.target].check
        for limits in _limit_ranges(backend, attributes.namespace):
            problem = await backend.run(attributes.context, _first_problems, check, limits, written["spec"])
            if problem:
                raise plugin.forbidden(attributes, problem)


def _limit_ranges(backend: Backend, namespace: str) -> Iterator[list[Tree]]:
    for stored in backend.list_cached(LIMIT_RANGES, namespace):
        yield stored.shared_tree()["spec"].get("limits") or []


def _first_problems(check: Callable[[Tree, Tree], Iterator[str]], limits: list[Tree], spec: Tree) -> str:
    problems = (problem for limit in limits for problem in check(limit, spec))
    return errors.aggregate(islice(problems, MAX_PROBLEMS))


def _set_defaults(pod: Tree, limits: list[Tree]) -> None:
    """Set the defaults of one LimitRange on containers, and list them in an annotation."""
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
    space_left = MAX_FILLED
    for field, kind in CONTAINERS:
        if spec.get(field):
            spec[field] = containers = [*spec[field]]
            for index, container in enumerate(containers):
                filled_before = len(filled)
                containers[index] = _with_defaults(container, defaults, kind, filled)
                space_left -= sum(map(len, filled[filled_before:]))
                if space_left < 0:
                    raise status.request_entity_too_large(f"limit is {MAX_FILLED} of what limit ranges add")
    pod["spec"] = spec
    if filled:
        annotation = f"LimitRanger plugin set: {'; '.join(filled)}"
        pod["metadata"]["annotations"] = {**meta.annotations(pod), ANNOTATION: annotation}


def _with_defaults(
    container: Tree, defaults: Mapping[str, Mapping[str, str]], kind: str, filled: list[str]
) -> Tree:
    resources = dict(container.get("resources", {}))
    for field, singular in (("requests", "request"), ("limits", "limit")):
        resource_list = resources.get(field, {})
        missing = {name: amount for name, amount in defaults[field].items() if name not in resource_list}
        if missing:
            resources[field] = dict(sorted({**resource_list, **missing}.items()))
            filled.append(f"{', '.join(sorted(missing))} {singular} for {kind} {container['name']}")
    return container | {"resources": resources}


class _Usage(NamedTuple):
    """The request and limit of one resource, and the constraint of one LimitRange item."""

    resource: str
    kind: str
    enforced: Quantity
    request: Quantity | None
    limit: Quantity | None

    @property
    def enforcement_text(self) -> str:
        return f"{self.resource} usage per {self.kind} is {self.enforced}"


def _minimum_problem(usage: _Usage) -> str:
    if usage.request is None:
        return f"minimum {usage.enforcement_text}.  No request is specified"
    if usage.request < usage.enforced:
        return f"minimum {usage.enforcement_text}, but request is {usage.request}"
    if usage.limit is not None and usage.limit < usage.enforced:
        return f"minimum {usage.enforcement_text}, but limit is {usage.limit}"
    return ""


def _maximum_problem(usage: _Usage) -> str:
    if usage.limit is None:
        return f"maximum {usage.enforcement_text}.  No limit is specified"
    if usage.limit > usage.enforced:
        return f"maximum {usage.enforcement_text}, but limit is {usage.limit}"
    if usage.request is not None and usage.request > usage.enforced:
        return f"maximum {usage.enforcement_text}, but request is {usage.request}"
    return ""


def _maximum_request_problem(usage: _Usage) -> str:
    """Return the problem of a claim, which has requests only."""
    if usage.request is None:
        return f"maximum {usage.enforcement_text}.  No request is specified"
    if usage.request > usage.enforced:
        return f"maximum {usage.enforcement_text}, but request is {usage.request}"
    return ""


def _ratio_problem(usage: _Usage) -> str:
    bound = f"{usage.resource} max limit to request ratio per {usage.kind} is {usage.enforced}"
    if not usage.request:
        return f"{bound}, but no request is specified or request is 0"
    if not usage.limit:
        return f"{bound}, but no limit is specified or limit is 0"
    amounts = usage.limit, usage.request, usage.enforced
    scale = quantity.MILLI if all(amount.scaled_value() <= _MAX_MILLI for amount in amounts) else 0
    ratio = usage.limit.scaled_value(scale) / usage.request.scaled_value(scale)
    is_milli = usage.enforced.scaled_value() <= _MAX_MILLI
    maximum = usage.enforced.scaled_value(quantity.MILLI) if is_milli else usage.enforced.scaled_value()
    return f"{bound}, but provided ratio is {ratio:f}" if ratio * (1000 if is_milli else 1) > maximum else ""


Constraint = Callable[[_Usage], str]
_POD_CONSTRAINTS: Mapping[str, Constraint] = {
    "min": _minimum_problem,
    "max": _maximum_problem,
    "maxLimitRequestRatio": _ratio_problem,
}
_CLAIM_CONSTRAINTS: Mapping[str, Constraint] = {"min": _minimum_problem, "max": _maximum_request_problem}


def _check_pod(limit: Tree, spec: Tree) -> Iterator[str]:
    if limit.get("type") == "Container":
        for field, _ in CONTAINERS:
            for container in spec.get(field) or ():
                resources = container.get("resources", {})
                yield from _problems(
                    limit,
                    _POD_CONSTRAINTS,
                    amounts(resources.get("requests")),
                    amounts(resources.get("limits")),
                )
    elif limit.get("type") == "Pod":
        yield from _problems(limit, _POD_CONSTRAINTS, pod_total(spec, "requests"), pod_total(spec, "limits"))


def _check_claim(limit: Tree, spec: Tree) -> Iterator[str]:
    if limit.get("type") == "PersistentVolumeClaim":
        yield from _problems(
            limit, _CLAIM_CONSTRAINTS, amounts(spec.get("resources", {}).get("requests")), {}
        )


class _LimitedTarget(NamedTuple):
    """A target that LimitRanges limit."""

    operations: Collection[Operation]
    """The operations that can change its resources."""
    check: Callable[[Tree, Tree], Iterator[str]]
    has_defaults: bool


_LIMITED_TARGETS: Mapping[Target, _LimitedTarget] = {
    plugin.POD: _LimitedTarget(plugin.CREATE, _check_pod, has_defaults=True),
    RESIZE: _LimitedTarget(plugin.UPDATE, _check_pod, has_defaults=True),
    plugin.CLAIM: _LimitedTarget(plugin.WRITE, _check_claim, has_defaults=False),
}


def _problems(
    limit: Tree, constraints: Mapping[str, Constraint], requests: Amounts, limits: Amounts
) -> Iterator[str]:
    for field, constraint in constraints.items():
        for resource, enforced in sorted((limit.get(field) or {}).items()):
            usage = _Usage(
                resource,
                limit["type"],
                quantity.parse(enforced),
                requests.get(resource),
                limits.get(resource),
            )
            if problem := constraint(usage):
                yield problem
