"""What workload kinds share: checks of selector, pod template, counts in a status and rolling updates; columns."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, gotext, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.labels.selector import Selector, SelectorError, from_label_selector
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common import ages, checks
from mockube.apiserver.kinds.common.cells import CONTAINERS, IMAGES, SELECTOR, names_and_images, number, part
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import Fill
from mockube.apiserver.kinds.common.selectors import check_selector
from mockube.apiserver.kinds.common.validation import Update
from mockube.apiserver.kinds.kind import UnconvertibleObject
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .context import STRICT, PodValidationOptions
from .pod_template import check_pod_template

# --- selector and template

ALWAYS = "Always"
CheckTemplate = Callable[[ReadOnlyTree, Path, PodValidationOptions], Iterable[FieldError]]


def selector_of(spec: ReadOnlyTree) -> Selector | None:
    """Return the selector, or None if it is invalid."""
    try:
        return from_label_selector(spec.get("selector"))
    except SelectorError:
        return None


def is_empty(selector: ReadOnlyTree) -> bool:
    return not (selector.get("matchLabels") or selector.get("matchExpressions"))


def check_matches(template: ReadOnlyTree, selector: Selector, path: Path) -> Iterable[FieldError]:
    """Check that the selector selects the pods of the template."""
    labels = (template.get("metadata") or {}).get("labels")
    if selector.matches(labels or {}):
        return ()
    problem = "`selector` does not match template `labels`"
    return (errors.invalid(path.child("metadata", "labels"), labels, problem),)


def check_required_selector(spec: ReadOnlyTree, path: Path, kind: str) -> Iterator[FieldError]:
    """Check that there is a selector and that it is not empty. Messages name the `kind`."""
    selector, path = spec.get("selector"), path.child("selector")
    if selector is None:
        yield errors.required(path)
        return
    yield from check_selector(selector, path)
    if is_empty(selector):
        yield errors.invalid(path, selector, f"empty selector is invalid for {kind}")


def check_restarts(template: ReadOnlyTree, path: Path, kind: str) -> Iterator[FieldError]:
    """Check that the pods always restart and have no deadline."""
    spec, path = template.get("spec") or {}, path.child("spec")
    if spec.get("restartPolicy") != ALWAYS:
        policy = spec.get("restartPolicy", "")
        yield errors.not_supported(path.child("restartPolicy"), policy, (ALWAYS,))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield errors.forbidden(path.child("activeDeadlineSeconds"), detail)


def check_selected_template(
    template: ReadOnlyTree,
    selector: Selector,
    path: Path,
    *,
    kind: str,
    options: PodValidationOptions = STRICT,
    check: CheckTemplate = check_pod_template,
) -> Iterator[FieldError]:
    """Check that the selector selects the template, run `check`, and check that its pods always restart."""
    if not selector.empty:
        yield from check_matches(template, selector, path)
    yield from check(template, path, options)
    yield from check_restarts(template, path, kind)


# --- counts in a status


def counts(*names: str) -> Check:
    """Check that none of these fields is negative."""
    return checks.all_of(*(checks.field(name, checks.non_negative) for name in names))


def at_most_field(name: str, *names: str, title: str) -> Check:
    """Check that each of these fields is at most the field `name`, which messages name `title`."""

    def check(status: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        maximum = status.get(name, 0)
        return [
            errors.invalid(path.child(other), status.get(other, 0), f"cannot be greater than {title}")
            for other in names
            if status.get(other, 0) > maximum
        ]

    return check


AT_MOST_REPLICAS: Final = checks.all_of(
    at_most_field(
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", title="status.replicas"
    ),
    at_most_field("readyReplicas", "availableReplicas", title="readyReplicas"),
)
"""The check of the counts of a ReplicaSet or a ReplicationController against each other."""


def check_collisions(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check that the collision count does not decrease."""
    new_count, old_count = ((tree.get("status") or {}).get("collisionCount") for tree in (new, old))
    if old_count is None or (new_count is not None and new_count >= old_count):
        return ()
    path = ROOT.child("status", "collisionCount")
    return (errors.invalid(path, new_count or 0, "cannot be decremented"),)


def status_update(check: Check) -> Update:
    return lambda new, _old: check(new.get("status") or {}, ROOT.child("status"))


# --- columns


def replica_set_printer(selector: Callable[[Tree], str]) -> Printer:
    """Return the columns of a ReplicaSet or a ReplicationController, with the text of its selector."""

    def cells(tree: Tree, now: datetime) -> list[Any]:
        return [
            meta.name(tree),
            number(tree, "spec", "replicas"),
            number(tree, "status", "replicas"),
            number(tree, "status", "readyReplicas"),
            ages.age(tree, now),
            *names_and_images(part(tree, "spec", "template")),
            selector(part(tree, "spec", "selector")),
        ]

    columns = (
        NAME,
        Column(name="Desired", type="integer"),
        Column(name="Current", type="integer"),
        Column(name="Ready", type="integer"),
        AGE_COLUMN,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    )
    return Printer(columns=columns, cells=cells)


def ready_replicas(tree: Tree) -> str:
    """Return the cell of the ready pods and the desired ones: `2/3`."""
    return f"{number(tree, 'status', 'readyReplicas')}/{number(tree, 'spec', 'replicas')}"


# --- rolling updates

_PERCENT: Final = checks.report(names.check_percent)


def check_amount(amount: IntOrString, path: Path) -> Iterable[FieldError]:
    """Check that the amount is a number that is not negative, or a percentage."""
    return checks.non_negative(amount, path) if isinstance(amount, int) else _PERCENT(amount, path)


def value_of(amount: IntOrString) -> int:
    """Return a number, or the number in a percentage; 0 if it is neither."""
    return amount if isinstance(amount, int) else _number_in(amount)


@memoize(256, max_length=8)
def _number_in(text: str) -> int:
    try:
        return gotext.parse_int(text if names.check_percent(text) else text.removesuffix("%"))
    except gotext.NumberError:
        return 0


def check_not_more_than_100_percent(amount: IntOrString, path: Path) -> Iterable[FieldError]:
    if isinstance(amount, int) or value_of(amount) <= 100 or names.check_percent(amount):
        return ()
    return (errors.invalid(path, amount, "must not be greater than 100%"),)


def default_rolling_update(**literals: Any) -> Fill:
    """Return a step that sets default parameters of a rolling update, in the order in which Go writes them."""

    def fill(strategy: Tree) -> None:
        if strategy["type"] == "RollingUpdate":
            strategy["rollingUpdate"] = literals | strategy.get("rollingUpdate", {})

    return fill


def normalize_number(kind: str, text: str, about: str = "") -> str:
    """Return a number's text as Go writes it; raise `UnconvertibleObject` if it is not a number."""
    try:
        return str(gotext.parse_int(text))
    except gotext.NumberError as error:
        raise UnconvertibleObject(kind, f"{about}{error}") from error
