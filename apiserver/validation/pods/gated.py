"""Where pods may run that nobody schedules yet: it may be narrowed down."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apiserver.validation.internal import internal
from apiserver.validation.pods.affinity import REQUIRED
from apiserver.validation.pods.pods import SPEC
from apiserver.validation.rules import Tree, as_before

_AFFINITY: Final = SPEC.child("affinity", "nodeAffinity")
_TERM: Final = "core.NodeSelectorTerm"


def check_directions(spec: Tree, before: Tree) -> Iterator[FieldError]:
    selector, was = spec.get("nodeSelector"), before.get("nodeSelector") or {}
    if not was.items() <= (selector or {}).items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield errors.invalid(SPEC.child("nodeSelector"), selector, detail)
    yield from _check_terms(_terms(spec), _terms(before))


def _node_affinity(spec: Tree) -> Any:
    return (spec.get("affinity") or {}).get("nodeAffinity")


def _terms(spec: Tree) -> Sequence[Tree]:
    required = (_node_affinity(spec) or {}).get(REQUIRED) or {}
    return required.get("nodeSelectorTerms") or ()


def _check_terms(terms: Sequence[Tree], before: Sequence[Tree]) -> Iterable[FieldError]:
    """Of the terms one is enough, so there must not be more of them. What one demands may become more."""
    path = _AFFINITY.child(REQUIRED, "nodeSelectorTerms")
    if before and len(terms) != len(before):
        shown = [internal(_TERM, term) for term in terms] or None
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return (errors.invalid(path, shown, detail),)
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        errors.invalid(path.index(index), internal(_TERM, term), detail)
        for index, (term, was) in enumerate(zip(terms, before, strict=False))
        if not _demands_more(term, was)
    ]


def _demands_more(term: Tree, before: Tree) -> bool:
    """A term that demands nothing is met by no node, and with a demand by some."""
    now, was = (
        [one.get(field) or [] for field in ("matchExpressions", "matchFields")] for one in (term, before)
    )
    if not any(was):
        return not any(now)
    return all(there[: len(had)] == had for there, had in zip(now, was, strict=True))


def as_if_not_directed(spec: Tree, before: Tree) -> Tree:
    """The spec with the selector and the affinity of before, if they differ."""
    spec = as_before(spec, before, "nodeSelector")
    if _node_affinity(spec) == _node_affinity(before):
        return spec
    affinity = as_before(spec.get("affinity") or {}, before.get("affinity") or {}, "nodeAffinity")
    if not affinity and before.get("affinity") is None:
        return as_before(spec, before, "affinity")
    return {**spec, "affinity": affinity}
