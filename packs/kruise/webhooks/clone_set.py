"""CloneSet: the defaults and the validation of OpenKruise's webhooks."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import errors, gotext, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import PODS
from mockube.apimachinery.intstr import IntOrString, IntOrStringError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common.checks import NOT_NEGATIVE
from mockube.apiserver.registry.registry import Registry
from mockube.packs.kruise.definitions import beta
from mockube.packs.kruise.replicas import scaled_share

from . import workloads
from .go_form import go_int_or_string

IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY = "InPlaceIfPossible", "InPlaceOnly"
_POLICIES: Final = (beta.RECREATE, IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY)
MAX_UNAVAILABLE: Final = "20%"
_NO_DEADLINE: Final = 2**31 - 1
_SPEC: Final = ROOT.child("spec")


def set_defaults(tree: Tree, old: ReadOnlyTree | None) -> None:
    spec = tree["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    workloads.set_template_defaults(spec, old and old["spec"])
    strategy = spec["updateStrategy"]
    if tree["apiVersion"] == beta.ALPHA:
        _default_rolling(strategy, "type")
        return
    strategy["type"] = strategy.get("type") or beta.ROLLING_UPDATE
    if strategy["type"] == beta.ROLLING_UPDATE:
        _default_rolling(strategy.setdefault("rollingUpdate", {}), "podUpdatePolicy")


def _default_rolling(update: Tree, policy_field: str) -> None:
    update[policy_field] = update.get(policy_field) or beta.RECREATE
    if update[policy_field] in (IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY):
        update.setdefault("inPlaceUpdateStrategy", {})
    update.setdefault("partition", 0)
    update.setdefault("maxUnavailable", MAX_UNAVAILABLE)
    update.setdefault("maxSurge", 0)


def validate(registry: Registry, new: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    is_alpha = new["apiVersion"] == beta.ALPHA
    if old is not None:
        yield from _check_change(new["spec"], old["spec"], is_alpha=is_alpha)
    spec, old_spec = new["spec"], old and old["spec"]
    if spec["replicas"] < 0:
        yield errors.invalid(_SPEC.child("replicas"), spec["replicas"], NOT_NEGATIVE)
    yield from workloads.check_own_template(spec, old_spec, _with_claims(spec), ("cloneset", "cloneset"))
    strategy, path = spec["updateStrategy"], _SPEC.child("updateStrategy")
    if is_alpha:
        yield from _check_pods_to_delete(registry, new, old)
        yield from _check_alpha(strategy, spec["replicas"], path)
        yield from _check_deadline(spec, _SPEC.child("progressDeadlineSeconds"))
    else:
        yield from _check_repeated(_pods_to_delete(new))
        yield from _check_beta(strategy, spec["replicas"], path)


def _check_deadline(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check that pods can become available before the deadline."""
    seconds = spec.get("progressDeadlineSeconds")
    if seconds is None:
        return
    if seconds < 0:
        yield errors.invalid(path, seconds, NOT_NEGATIVE)
    if seconds != _NO_DEADLINE and seconds <= spec.get("minReadySeconds", 0):
        yield errors.invalid(path, seconds, "must be greater than minReadySeconds")


# --- the pod template


def _with_claims(spec: ReadOnlyTree) -> ReadOnlyTree:
    """Return the template from which pods are created, with a volume for each claim."""
    template = workloads.pod_template(spec["template"])
    names = [meta.name(claim) for claim in spec.get("volumeClaimTemplates") or ()]
    if not names:
        return template
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    template_volumes = template["spec"].get("volumes") or ()
    return {**template, "spec": {**template["spec"], "volumes": [*template_volumes, *volumes]}}


# --- scale strategy


_TO_DELETE: Final = _SPEC.child("scaleStrategy", "podsToDelete")


def _check_pods_to_delete(
    registry: Registry, new: ReadOnlyTree, old: ReadOnlyTree | None
) -> Iterator[FieldError]:
    names = _pods_to_delete(new)
    if repeated := [*_check_repeated(names)]:
        yield from repeated
        return
    for name in sorted({*names} - {*_pods_to_delete(old or {})}):
        problem = _pod_problem(registry, new, name)
        if problem:
            yield errors.invalid(_TO_DELETE, name, f"find pod {name} {problem}")


def _check_repeated(names: Sequence[str]) -> Iterable[FieldError]:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if not repeated:
        return ()
    return (errors.invalid(_TO_DELETE, names, f"duplicated items [{' '.join(repeated)}]"),)


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


def _check_alpha(strategy: ReadOnlyTree, replicas: int, path: Path) -> Iterator[FieldError]:
    policy = strategy["type"]
    if policy not in _POLICIES:
        problem = f"must be '{beta.RECREATE}', {IN_PLACE_IF_POSSIBLE} or '{IN_PLACE_ONLY}'"
        yield errors.invalid(path.child("type"), policy, problem)
    in_place_only = "strategy type InPlaceOnly" if policy == IN_PLACE_ONLY else ""
    yield from _check_amounts(strategy, replicas, path, in_place_only=in_place_only, counts_surge=True)


def _check_beta(strategy: ReadOnlyTree, replicas: int, path: Path) -> Iterator[FieldError]:
    if strategy["type"] not in (beta.ROLLING_UPDATE, beta.ON_DELETE):
        problem = f"must be '{beta.ROLLING_UPDATE}' or '{beta.ON_DELETE}'"
        yield errors.invalid(path.child("type"), strategy["type"], problem)
    update = strategy.get("rollingUpdate")
    if update is None:
        return
    path, policy = path.child("rollingUpdate"), update.get("podUpdatePolicy") or ""
    if policy not in ("", *_POLICIES):
        problem = f"must be '{beta.RECREATE}', '{IN_PLACE_IF_POSSIBLE}' or '{IN_PLACE_ONLY}'"
        yield errors.invalid(path.child("podUpdatePolicy"), policy, problem)
    in_place_only = "podUpdatePolicy InPlaceOnly" if policy == IN_PLACE_ONLY else ""
    # OpenKruise does not count maxSurge here.
    yield from _check_amounts(update, replicas, path, in_place_only=in_place_only, counts_surge=False)
    in_place = update.get("inPlaceUpdateStrategy") or {}
    yield from _check_downloads(in_place, path.child("inPlaceUpdateStrategy"))


def _check_amounts(
    update: ReadOnlyTree, replicas: int, path: Path, *, in_place_only: str, counts_surge: bool
) -> Iterator[FieldError]:
    """Check the numbers and the order of an update; `in_place_only` is the choice that excludes surge."""
    numbers = {
        name: (0, "")
        if name != "partition" and update.get(name) is None
        else _number(update.get(name), replicas)
        for name in ("partition", "maxUnavailable", "maxSurge")
    }
    yield from _check_number("partition", update, numbers, path)
    if numbers["partition"][0] < 0:
        yield errors.invalid(path.child("partition"), numbers["partition"][0], NOT_NEGATIVE)
    yield from workloads.check_priorities(update.get("priorityStrategy"), path.child("priorityStrategy"))
    yield from workloads.check_scattering(update.get("scatterStrategy"), path.child("scatterStrategy"))
    yield from _check_number("maxUnavailable", update, numbers, path)
    yield from _check_number("maxSurge", update, numbers, path)
    unavailable, surge = numbers["maxUnavailable"][0], numbers["maxSurge"][0]
    if in_place_only and surge > 0:
        problem = f"can not use maxSurge with {in_place_only}"
        yield errors.invalid(path.child("maxSurge"), str(update["maxSurge"]), problem)
    if replicas > 0 and max(unavailable, surge if counts_surge else 0) < 1:
        problem = "maxUnavailable and maxSurge should not both be less than 1"
        value = go_int_or_string(update.get("maxUnavailable"))
        yield errors.invalid(path.child("maxUnavailable"), value, problem)


def _number(value: IntOrString | None, replicas: int) -> tuple[int, str]:
    """Return the number without a problem, or 0 and the problem."""
    try:
        return scaled_share(value, replicas), ""
    except IntOrStringError as error:
        return 0, str(error)


def _check_number(
    name: str, strategy: ReadOnlyTree, numbers: Mapping[str, tuple[int, str]], path: Path
) -> Iterable[FieldError]:
    problem = numbers[name][1]
    if not problem:
        return ()
    message = f"failed GetScaledValueFromIntOrPercent for {name}: {problem}"
    value = strategy.get(name)
    return (errors.invalid(path.child(name), "<nil>" if value is None else str(value), message),)


def _check_downloads(in_place: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check how images are pulled in advance, which this cluster does not do."""
    parallelism = in_place.get("imagePreDownloadParallelism")
    if parallelism is not None and (problem := _parallelism_problem(parallelism)):
        yield errors.invalid(
            path.child("imagePreDownloadParallelism"), parallelism, f"imagePreDownloadParallelism {problem}"
        )
    for name in ("imagePreDownloadTimeoutSeconds", "imagePreDownloadMinUpdatedReadyPods"):
        if in_place.get(name, 0) < 0:
            yield errors.invalid(path.child(name), in_place[name], NOT_NEGATIVE)


def _parallelism_problem(value: IntOrString) -> str:
    try:
        if isinstance(value, str):
            if value.endswith("%"):
                return "does not support percentage value"
            value = gotext.parse_int(value, bits=32)
    except gotext.NumberError as error:
        return f"must be a valid integer: {error}"
    return "must be non-negative" if value < 0 else ""


# --- changes

_CHANGEABLE: Final = (
    "replicas", "template", "lifecycle", "scaleStrategy", "updateStrategy", "minReadySeconds",
    "progressDeadlineSeconds", "volumeClaimTemplates", "revisionHistoryLimit",
)  # fmt: skip
_IMAGE: Final = re.compile(r"/containers/[0-9]+/image")


def _check_change(new: ReadOnlyTree, old: ReadOnlyTree, *, is_alpha: bool) -> Iterator[FieldError]:
    if workloads.has_other_changes(new, old, _CHANGEABLE):
        names = ", ".join(f"'{name}'" for name in _CHANGEABLE[:-1])
        allowed = f"{names} and '{_CHANGEABLE[-1]}'"
        yield errors.forbidden(
            _SPEC, f"updates to cloneset spec for fields other than {allowed} are forbidden"
        )
    if is_alpha and new["updateStrategy"]["type"] == IN_PLACE_ONLY:
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
