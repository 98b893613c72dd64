"""How pods are spread over parts of a cluster."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.labels import check_label_name, check_selector
from apiserver.validation.pods.affinity import check_match_label_keys
from apiserver.validation.pods.leniency import Leniency
from apiserver.validation.rules import Tree, every, field, one_of, pointer, positive, required

_DO_NOT_SCHEDULE: Final = "DoNotSchedule"

_SKEW_AND_KEY: Final = every(
    field("maxSkew", positive, absent=0),
    required("topologyKey", detail="can not be empty"),
    field("whenUnsatisfiable", one_of(_DO_NOT_SCHEDULE, "ScheduleAnyway"), absent=""),
)
_INCLUSION: Final = one_of("Honor", "Ignore")
_INCLUSIONS: Final = every(pointer("nodeAffinityPolicy", _INCLUSION), pointer("nodeTaintsPolicy", _INCLUSION))


def _kind(constraint: Tree) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _check_not_repeated(constraint: Tree, later: Sequence[Tree], path: Path) -> Iterable[FieldError]:
    key, action = kind = _kind(constraint)
    if kind not in map(_kind, later):
        return ()
    return (errors.duplicate(path.child("{topologyKey, whenUnsatisfiable}"), f"{{{key}, {action}}}"),)


def _check_min_domains(constraint: Tree, path: Path) -> Iterator[FieldError]:
    domains, path = constraint.get("minDomains"), path.child("minDomains")
    action = constraint.get("whenUnsatisfiable", "")
    if domains is None:
        return
    yield from positive(domains, path)
    if action != _DO_NOT_SCHEDULE:
        problem = f"can only use minDomains if whenUnsatisfiable={_DO_NOT_SCHEDULE}, not {action}"
        yield errors.invalid(path, domains, problem)


def check_spread_constraints(
    constraints: Sequence[Tree], path: Path, leniency: Leniency
) -> Iterator[FieldError]:
    for index, constraint in enumerate(constraints):
        at = path.index(index)
        yield from _SKEW_AND_KEY(constraint, at)
        yield from _check_not_repeated(constraint, constraints[index + 1 :], at)
        yield from _check_min_domains(constraint, at)
        yield from _INCLUSIONS(constraint, at)
        if leniency.spread_label_keys:
            yield from _check_keys_as_before(constraint, at.child("matchLabelKeys"))
        else:
            yield from check_match_label_keys(constraint, at)
        if not leniency.spread_selectors:
            yield from pointer("labelSelector", check_selector)(constraint, at)


def _check_keys_as_before(constraint: Tree, path: Path) -> Iterator[FieldError]:
    """The rule for pods that are older than the one which adds the keys to the selector."""
    keys, selector = constraint.get("matchLabelKeys", ()), constraint.get("labelSelector")
    if keys and selector is None:
        yield errors.forbidden(path, "must not be specified when labelSelector is not set")
    selected = {*((selector or {}).get("matchLabels") or ())}
    selected |= {expression.get("key") for expression in (selector or {}).get("matchExpressions", ())}
    for index, key in enumerate(keys):
        yield from check_label_name(key, path.index(index))
        if key in selected:
            problem = "exists in both matchLabelKeys and labelSelector"
            yield errors.invalid(path.index(index), key, problem)
