"""The subsets of a UnitedDeployment: how each must be, and how their replicas must go together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.packs.subset_replicas import SubsetReplicasError, parse
from apimachinery.paths import Path
from apiserver.validation.node_selectors import check_term
from apiserver.validation.pods.tolerations import check_tolerations
from apiserver.validation.rules import Tree

View: TypeAlias = Mapping[str, Any]

ADAPTIVE: Final = "Adaptive"
_NO_LIMIT: Final = 1_000_000
_NONE: Final = -1
"""Replicas of a UnitedDeployment that does not say how many: the sum of its subsets'."""


# --- each


def check_subsets(topology: View, path: Path) -> Iterator[FieldError]:
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


# --- all together


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What one subset asks for, as numbers, and what of it is none."""

    replicas: int
    least: int
    most: int
    problems: Sequence[FieldError]


def check_replicas(replicas: int | None, subsets: Sequence[View], path: Path) -> Iterator[FieldError]:
    total = _NONE if replicas is None else replicas
    asked = [_asked(subset, total, path.index(index)) for index, subset in enumerate(subsets)]
    for index, (one, subset) in enumerate(zip(asked, subsets, strict=True)):
        yield from one.problems
        if one.least > one.most:
            problem = f"subset[{index}].minReplicas must be more than or equal to maxReplicas"
            yield errors.invalid(path.index(index).child("minReplicas"), subset.get("maxReplicas"), problem)
    are_given = any(subset.get("replicas") is not None for subset in subsets)
    are_bounded = any(_is_bounded(subset) for subset in subsets)
    if are_given and are_bounded:
        problem = (
            "subset.Replicas and subset.MinReplicas/subset.MaxReplicas are mutually exclusive in a "
            "UnitedDeployment"
        )
        yield errors.invalid(path, list(subsets), problem)
    elif are_bounded:
        yield from _check_bounds(total, subsets, asked, path)
    else:
        yield from _check_sum(total, subsets, sum(one.replicas for one in asked), path)


def _is_bounded(subset: View) -> bool:
    return subset.get("minReplicas") is not None or subset.get("maxReplicas") is not None


def _asked(subset: View, total: int, path: Path) -> _Asked:
    numbers, problems = {}, []
    for name, absent in (("replicas", 0), ("minReplicas", 0), ("maxReplicas", _NO_LIMIT)):
        value = subset.get(name)
        try:
            numbers[name] = absent if value is None else parse(total, value)
        except SubsetReplicasError as error:
            numbers[name] = 0
            problems.append(errors.invalid(path.child(name), value, str(error)))
    return _Asked(
        replicas=numbers["replicas"],
        least=numbers["minReplicas"],
        most=numbers["maxReplicas"],
        problems=problems,
    )


def _check_bounds(
    total: int, subsets: Sequence[View], asked: Sequence[_Asked], path: Path
) -> Iterator[FieldError]:
    if total == _NONE:
        problem = "spec.replicas must be not empty if you set subset.minReplicas/maxReplicas"
        yield errors.invalid(path, total, problem)
    limited = sum(subset.get("maxReplicas") is not None for subset in subsets)
    if limited >= len(subsets):
        yield errors.invalid(path, limited, "at least one subset.maxReplicas must be empty")
    least = sum(one.least for one in asked)
    if least > sum(one.most for one in asked):
        problem = "sum of indicated subset.minReplicas should not be greater than sum of indicated subset.maxReplicas"
        yield errors.invalid(path, least, problem)


def _check_sum(total: int, subsets: Sequence[View], wanted: int, path: Path) -> Iterator[FieldError]:
    given = sum(subset.get("replicas") is not None for subset in subsets)
    if total == _NONE:
        if given != len(subsets):
            problem = (
                "if UnitedDeployment replicas is not provided, replicas of all subsets should be provided"
            )
            yield errors.invalid(path, wanted, problem)
        return
    if wanted > total:
        problem = f"sum of indicated subset replicas {wanted} should not be greater than UnitedDeployment replicas {total}"
        yield errors.invalid(path, wanted, problem)
    if given == len(subsets) > 0 and wanted != total:
        problem = (
            f"if replicas of all subsets are provided, the sum of indicated subset replicas {wanted} should equal "
            f"UnitedDeployment replicas {total}"
        )
        yield errors.invalid(path, wanted, problem)


# --- changes

_FIXED: Final = ("nodeSelectorTerm", "tolerations")


def check_subset_changes(new: Tree, old: Tree, path: Path) -> Iterable[FieldError]:
    before = {subset["name"]: subset for subset in old.get("subsets") or ()}
    return [
        errors.forbidden(path.child("subsets").index(index).child(name), "may not be changed in an update")
        for index, subset in enumerate(new.get("subsets") or ())
        for name in _FIXED
        if subset["name"] in before
        and (subset.get(name) or None) != (before[subset["name"]].get(name) or None)
    ]
