"""Why a selector matches no pods of the files, although they have the pods that were meant. Pure.

A Service or budget without pods is no mistake by itself: an operator, another chart or a user creates the pods.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery.labels.selector import Operator, Selector
from mockube.lint.findings import Outcome
from mockube.lint.objects import LintObject

from .misspellings import is_misspelling
from .object_set import ObjectSet, PodTemplate
from .problem import Problem

_COMPONENT_LABELS: Final = ("component", "role", "tier")
_EQUAL: Final = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN})


class Mismatch(NamedTuple):
    """Why a selector matches no pods, and how clearly the files show which pods were meant."""

    reason: str
    is_certain: bool
    """Whether the object can only have meant these pods: it has their name, or the labels are misspelt."""
    is_component: bool
    """Whether the pods may be those of a component of a chart that is switched off."""


def mismatch(objects: ObjectSet, item: LintObject, selector: Selector | None) -> Mismatch | None:
    """Return why a selector of an object matches no pods; None if it does, or if the pods may come from elsewhere."""
    if selector is None or selector.matches_nothing:
        return None
    namespace = objects.namespace_of(item)
    here = objects.pods.get(namespace, ())
    if any(pod.is_selected(selector) for pod in here):
        return None
    elsewhere = [pod for pod in objects.all_pods() if pod.is_selected(selector)]
    if elsewhere:
        pod = elsewhere[0]
        reason = f'the pods of {pod.item.title} are in namespace "{pod.namespace}", and not in "{namespace}"'
        return Mismatch(reason, is_certain=not objects.creates_pods, is_component=False)
    clear = next(_intended_pods(item, selector, here), None)
    certain = clear or (None if objects.creates_pods else next(_sharing(selector, here), None))
    nearest = certain or (None if objects.creates_pods else next(_similar(item, selector, here), None))
    if nearest is None:
        return None
    differing = [each for each in selector.requirements if not nearest.meets(each)]
    missing_labels = ", ".join(map(str, differing))
    labels = {**nearest.added_labels, **nearest.labels}
    have = ", ".join(f"{each.key}={labels[each.key]}" for each in differing if each.key in labels)
    reason = f"no pods of the files have {missing_labels}: those of {nearest.item.title} have {have or 'no such label'}"
    is_component = clear is None and all(
        each.key.rpartition("/")[2] in _COMPONENT_LABELS for each in differing
    )
    return Mismatch(reason, is_certain=certain is not None, is_component=is_component)


def selector_problem(
    objects: ObjectSet, item: LintObject, selector: Selector | None, field: str
) -> Iterator[Problem]:
    """Yield a problem if a selector of a policy or budget matches no pods although the files show which were meant."""
    found = mismatch(objects, item, selector)
    if found is not None:
        outcome = Outcome.NOTED if found.is_component else None if found.is_certain else Outcome.WARNED
        yield Problem(item=item, field=field, message=found.reason, outcome=outcome)


def misspelt_pods(selector: Selector, pods: Sequence[PodTemplate]) -> Iterator[PodTemplate]:
    """Yield pods whose labels a selector misspells; none if it matches some."""
    if not any(pod.is_selected(selector) for pod in pods):
        yield from (pod for pod in pods if _is_misspelt(selector, pod))


def _intended_pods(
    item: LintObject, selector: Selector, pods: Sequence[PodTemplate]
) -> Iterator[PodTemplate]:
    """Yield the pods that an object can only have meant: those of an object with its name, or with misspelt labels."""
    yield from (pod for pod in pods if pod.item.name == item.name and pod.labels)
    yield from (pod for pod in pods if _is_misspelt(selector, pod))


def _sharing(selector: Selector, pods: Sequence[PodTemplate]) -> Iterator[PodTemplate]:
    """Yield pods with some of the labels, those with most of them first. Pods that an operator creates have such labels, too."""
    counts = [sum(map(pod.meets, selector.requirements)) for pod in pods]
    best = max(counts, default=0)
    yield from (pod for pod, count in zip(pods, counts, strict=True) if best and count == best)


def _similar(item: LintObject, selector: Selector, pods: Sequence[PodTemplate]) -> Iterator[PodTemplate]:
    """Yield pods of the same chart, which has no others, or pods of the same folder with labels of the same keys."""
    beside = [pod for pod in pods if pod.item.place == item.place]
    yield from (pod for pod in beside if any(each.key in pod.labels for each in selector.requirements))
    if item.chart:
        yield from beside


def _is_misspelt(selector: Selector, pod: PodTemplate) -> bool:
    """Return whether labels match but for misspelt keys and values."""
    return all(
        pod.meets(each)
        or any(
            (key == each.key or is_misspelling(key, each.key))
            and (value in each.values or any(is_misspelling(value, other) for other in each.values))
            for key, value in pod.labels.items()
        )
        for each in selector.requirements
        if each.operator in _EQUAL
    ) and any(each.operator in _EQUAL for each in selector.requirements)
