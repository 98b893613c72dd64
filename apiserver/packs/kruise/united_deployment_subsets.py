"""Validation of the subsets of a UnitedDeployment: each subset, and the replicas of all."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.packs.uniteddeployments import SubsetReplicasError, parse_subset_replicas
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.selectors import check_term
from mockube.apiserver.kinds.core.pod.scheduling import check_tolerations

ADAPTIVE: Final = "Adaptive"
_UNLIMITED: Final = 1_000_000
_NOT_SET: Final = -1
"""The replicas of a UnitedDeployment without this field: they are the sum of its subsets' replicas."""


# --- each subset


def check_subsets(topology: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    is_adaptive = (topology.get("scheduleStrategy") or {}).get("type") == ADAPTIVE
    seen: set[str] = set()
    for index, subset in enumerate(topology.get("subsets") or ()):
        at = path.child("subsets").index(index)
        yield from _check_name(subset["name"], seen, at.child("name"))
        seen.add(subset["name"])
        yield from check_term(subset.get("nodeSelectorTerm") or {}, at.child("nodeSelectorTerm"))
        yield from check_tolerations(subset.get("tolerations") or (), at.child("tolerations"), compared=False)
        if is_adaptive and subset.get("replicas") is not None:
            detail = "specify replicas use minReplicas/maxReplicas to enable adaptive strategy"
            yield errors.forbidden(at.child("replicas"), detail)


def _check_name(name: str, seen: set[str], path: Path) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path)
    if name in seen:
        yield errors.invalid(path, name, f"duplicated subset name {name}")
    problems = names.check_dns1123_label(name)
    if problems:
        yield errors.invalid(path, name, f"invalid subset name {', '.join(problems)}")


# --- the replicas of all subsets


class _SubsetReplicas(Struct, frozen=True, kw_only=True):
    """The replicas of one subset as numbers, and the errors of invalid ones."""

    replicas: int
    minimum: int
    maximum: int
    problems: Sequence[FieldError]


def check_replicas(replicas: int | None, subsets: Sequence[ReadOnlyTree], path: Path) -> Iterator[FieldError]:
    total = _NOT_SET if replicas is None else replicas
    requested = [_subset_replicas(subset, total, path.index(index)) for index, subset in enumerate(subsets)]
    for index, (subset_replicas, subset) in enumerate(zip(requested, subsets, strict=True)):
        yield from subset_replicas.problems
        if subset_replicas.minimum > subset_replicas.maximum:
            problem = f"subset[{index}].minReplicas must be more than or equal to maxReplicas"
            yield errors.invalid(path.index(index).child("minReplicas"), subset.get("maxReplicas"), problem)
    has_replicas = any(subset.get("replicas") is not None for subset in subsets)
    has_bounds = any(_is_bounded(subset) for subset in subsets)
    if has_replicas and has_bounds:
        problem = (
            "subset.Replicas and subset.MinReplicas/subset.MaxReplicas are mutually exclusive in a "
            "UnitedDeployment"
        )
        yield errors.invalid(path, list(subsets), problem)
    elif has_bounds:
        yield from _check_bounds(total, subsets, requested, path)
    else:
        yield from _check_sum(
            total, subsets, sum(subset_replicas.replicas for subset_replicas in requested), path
        )


def _is_bounded(subset: ReadOnlyTree) -> bool:
    return subset.get("minReplicas") is not None or subset.get("maxReplicas") is not None


def _subset_replicas(subset: ReadOnlyTree, total: int, path: Path) -> _SubsetReplicas:
    numbers, problems = {}, []
    for name, absent in (("replicas", 0), ("minReplicas", 0), ("maxReplicas", _UNLIMITED)):
        value = subset.get(name)
        try:
            numbers[name] = absent if value is None else parse_subset_replicas(total, value)
        except SubsetReplicasError as error:
            numbers[name] = 0
            problems.append(errors.invalid(path.child(name), value, str(error)))
    return _SubsetReplicas(
        replicas=numbers["replicas"],
        minimum=numbers["minReplicas"],
        maximum=numbers["maxReplicas"],
        problems=problems,
    )


def _check_bounds(
    total: int, subsets: Sequence[ReadOnlyTree], requested: Sequence[_SubsetReplicas], path: Path
) -> Iterator[FieldError]:
    if total == _NOT_SET:
        problem = "spec.replicas must be not empty if you set subset.minReplicas/maxReplicas"
        yield errors.invalid(path, total, problem)
    limited = sum(subset.get("maxReplicas") is not None for subset in subsets)
    if limited >= len(subsets):
        yield errors.invalid(path, limited, "at least one subset.maxReplicas must be empty")
    minimum = sum(subset_replicas.minimum for subset_replicas in requested)
    if minimum > sum(subset_replicas.maximum for subset_replicas in requested):
        problem = "sum of indicated subset.minReplicas should not be greater than sum of indicated subset.maxReplicas"
        yield errors.invalid(path, minimum, problem)


def _check_sum(
    total: int, subsets: Sequence[ReadOnlyTree], subset_total: int, path: Path
) -> Iterator[FieldError]:
    subset_count = sum(subset.get("replicas") is not None for subset in subsets)
    if total == _NOT_SET:
        if subset_count != len(subsets):
            problem = (
                "if UnitedDeployment replicas is not provided, replicas of all subsets should be provided"
            )
            yield errors.invalid(path, subset_total, problem)
        return
    if subset_total > total:
        problem = f"sum of indicated subset replicas {subset_total} should not be greater than UnitedDeployment replicas {total}"
        yield errors.invalid(path, subset_total, problem)
    if subset_count == len(subsets) > 0 and subset_total != total:
        problem = (
            f"if replicas of all subsets are provided, the sum of indicated subset replicas {subset_total} should equal "
            f"UnitedDeployment replicas {total}"
        )
        yield errors.invalid(path, subset_total, problem)


# --- changes

_IMMUTABLE: Final = ("nodeSelectorTerm", "tolerations")


def check_subset_changes(new: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    old_subsets = {subset["name"]: subset for subset in old.get("subsets") or ()}
    return [
        errors.forbidden(path.child("subsets").index(index).child(name), "may not be changed in an update")
        for index, subset in enumerate(new.get("subsets") or ())
        for name in _IMMUTABLE
        if subset["name"] in old_subsets
        and (subset.get(name) or None) != (old_subsets[subset["name"]].get(name) or None)
    ]
