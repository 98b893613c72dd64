"""CloneSet: the defaults and the validation of OpenKruise's webhooks."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import errors, intstr, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import PODS
from mockube.apimachinery.intstr import IntOrString, IntOrStringError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common.checks import NOT_NEGATIVE
from mockube.apiserver.packs.kruise.workloads import (
    check_own_template,
    check_priorities,
    check_scattering,
    has_other_changes,
    set_template_defaults,
)
from mockube.apiserver.registry.registry import Registry

RECREATE, IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY = "ReCreate", "InPlaceIfPossible", "InPlaceOnly"
MAX_UNAVAILABLE: Final = "20%"
_NO_DEADLINE: Final = 2**31 - 1
_SPEC: Final = ROOT.child("spec")


def set_defaults(registry: Registry, tree: Tree, old: ReadOnlyTree | None) -> None:
    spec = tree["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("scaleStrategy", {})
    set_template_defaults(registry, spec, old and old["spec"])
    strategy = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or RECREATE
    if strategy["type"] in (IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY):
        strategy.setdefault("inPlaceUpdateStrategy", {})
    strategy.setdefault("partition", 0)
    strategy.setdefault("maxUnavailable", MAX_UNAVAILABLE)
    strategy.setdefault("maxSurge", 0)


def validate(registry: Registry, new: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    if old is not None:
        yield from _check_change(new["spec"], old["spec"])
    spec, old_spec = new["spec"], old and old["spec"]
    if spec["replicas"] < 0:
        yield errors.invalid(_SPEC.child("replicas"), spec["replicas"], NOT_NEGATIVE)
    yield from _check_deadline(spec, _SPEC.child("progressDeadlineSeconds"))
    yield from check_own_template(spec, old_spec, _with_claims(spec), ("cloneset", "cloneset"))
    yield from _check_pods_to_delete(registry, new, old)
    yield from _check_strategy(spec["updateStrategy"], spec["replicas"], _SPEC.child("updateStrategy"))


def _check_deadline(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check that pods can become available before the deadline."""
    seconds = spec.get("progressDeadlineSeconds")
    if seconds in (None, _NO_DEADLINE) or seconds > spec.get("minReadySeconds", 0):
        return ()
    return (errors.invalid(path, seconds, "must be greater than minReadySeconds"),)


# --- the pod template


def _with_claims(spec: ReadOnlyTree) -> ReadOnlyTree:
    """Return the template from which pods are created, with a volume for each claim."""
    template: ReadOnlyTree = spec["template"]
    names = [meta.name(claim) for claim in spec.get("volumeClaimTemplates") or ()]
    if not names:
        return template
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    template_volumes = template["spec"].get("volumes") or ()
    return {**template, "spec": {**template["spec"], "volumes": [*template_volumes, *volumes]}}


# --- scale strategy


def _check_pods_to_delete(
    registry: Registry, new: ReadOnlyTree, old: ReadOnlyTree | None
) -> Iterator[FieldError]:
    path = _SPEC.child("scaleStrategy", "podsToDelete")
    names = _pods_to_delete(new)
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        yield errors.invalid(path, names, f"duplicated items [{' '.join(repeated)}]")
        return
    for name in sorted({*names} - {*_pods_to_delete(old or {})}):
        problem = _pod_problem(registry, new, name)
        if problem:
            yield errors.invalid(path, name, f"find pod {name} {problem}")


def _pods_to_delete(tree: ReadOnlyTree) -> Sequence[str]:
    strategy = tree.get("spec", {}).get("scaleStrategy") or {}
    return strategy.get("podsToDelete") or ()


def _pod_problem(registry: Registry, clone_set: ReadOnlyTree, name: str) -> str:
    stored = registry.find_cached(PODS, meta.namespace(clone_set), name)
    if stored is None:
        return f'failed: Pod "{name}" not found'
    pod = stored.tree()
    if meta.is_deleting(pod):
        return "already terminating"
    owner = meta.controller_of(pod)
    is_own = owner is not None and owner.get("uid") == meta.uid(clone_set)
    return "" if is_own else "owner is not this CloneSet"


# --- update strategy


def _check_strategy(strategy: ReadOnlyTree, replicas: int, path: Path) -> Iterator[FieldError]:
    kind = strategy["type"]
    if kind not in (RECREATE, IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY):
        problem = f"must be '{RECREATE}', {IN_PLACE_IF_POSSIBLE} or '{IN_PLACE_ONLY}'"
        yield errors.invalid(path.child("type"), kind, problem)
    numbers = {
        name: _number(strategy[name], replicas) for name in ("partition", "maxUnavailable", "maxSurge")
    }
    yield from _check_number("partition", strategy, numbers, path)
    if numbers["partition"][0] < 0:
        yield errors.invalid(path.child("partition"), numbers["partition"][0], NOT_NEGATIVE)
    yield from check_priorities(strategy.get("priorityStrategy"), path.child("priorityStrategy"))
    yield from check_scattering(strategy.get("scatterStrategy"), path.child("scatterStrategy"))
    yield from _check_number("maxUnavailable", strategy, numbers, path)
    yield from _check_number("maxSurge", strategy, numbers, path)
    if kind == IN_PLACE_ONLY and numbers["maxSurge"][0] > 0:
        problem = "can not use maxSurge with strategy type InPlaceOnly"
        yield errors.invalid(path.child("maxSurge"), str(strategy["maxSurge"]), problem)
    if replicas > 0 and max(numbers["maxUnavailable"][0], numbers["maxSurge"][0]) < 1:
        problem = "maxUnavailable and maxSurge should not both be less than 1"
        yield errors.invalid(path.child("maxUnavailable"), strategy["maxUnavailable"], problem)


def _number(value: IntOrString, replicas: int) -> tuple[int, str]:
    """Return the number without a problem, or 0 and the problem."""
    try:
        return intstr.scaled_value(value, replicas, round_up=True), ""
    except IntOrStringError as error:
        return 0, str(error)


def _check_number(
    name: str, strategy: ReadOnlyTree, numbers: Mapping[str, tuple[int, str]], path: Path
) -> Iterable[FieldError]:
    problem = numbers[name][1]
    if not problem:
        return ()
    message = f"failed GetScaledValueFromIntOrPercent for {name}: {problem}"
    return (errors.invalid(path.child(name), str(strategy[name]), message),)


# --- changes

_CHANGEABLE: Final = (
    "replicas", "template", "lifecycle", "scaleStrategy", "updateStrategy", "minReadySeconds",
    "progressDeadlineSeconds", "volumeClaimTemplates", "revisionHistoryLimit",
)  # fmt: skip
_IMAGE: Final = re.compile(r"/containers/[0-9]+/image")


def _check_change(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    if has_other_changes(new, old, _CHANGEABLE):
        names = ", ".join(f"'{name}'" for name in _CHANGEABLE[:-1])
        allowed = f"{names} and '{_CHANGEABLE[-1]}'"
        yield errors.forbidden(
            _SPEC, f"updates to cloneset spec for fields other than {allowed} are forbidden"
        )
    if new["updateStrategy"]["type"] == IN_PLACE_ONLY:
        other_change = _first_other_change(_IMAGE, old["template"]["spec"], new["template"]["spec"])
        if other_change:
            problem = f"only allowed to update images in spec for {IN_PLACE_ONLY}, but found {other_change}"
            yield errors.forbidden(_SPEC, problem)


def _first_other_change(allowed: re.Pattern[str], old: Any, new: Any) -> str:
    """Return the first operation of a JSON patch that replaces no allowed path, as `add /volumes`; "" if there is none."""
    changes = _changes(old, new, "")
    return next(
        (f"{kind} {path}" for kind, path in changes if kind != "replace" or not allowed.search(path)), ""
    )


def _changes(old: Any, new: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            field_path = f"{path}/{name}"
            if name not in new:
                yield "remove", field_path
            elif name not in old:
                yield "add", field_path
            else:
                yield from _changes(old[name], new[name], field_path)
    elif isinstance(old, list) and isinstance(new, list):
        for index, (old_item, other) in enumerate(zip(old, new, strict=False)):
            yield from _changes(old_item, other, f"{path}/{index}")
        yield from (("add", f"{path}/{index}") for index in range(len(old), len(new)))
        yield from (("remove", f"{path}/{index}") for index in range(len(new), len(old)))
    elif old != new:
        yield "replace", path
