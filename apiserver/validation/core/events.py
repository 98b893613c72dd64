"""Events: those of old, which hardly have rules, and those of events.k8s.io, whose kind is the same inside.

Upstream names fields as the core group does, whichever group the event is of.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from apimachinery import errors, meta, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.validation import objectmeta
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.objectmeta import SUBDOMAIN
from apiserver.validation.objects import within
from apiserver.validation.rules import IMMUTABLE, Tree

_LONGEST: Final = 128
_LONGEST_MESSAGE: Final = 1024

_CORE_NAMES: Final[Mapping[str, str]] = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}


def _as_core(event: Tree) -> Tree:
    """An event with the core group's names for its fields."""
    return {_CORE_NAMES.get(name, name): value for name, value in event.items()}


# --- what is said of every event


def _does_not_match(namespace: str) -> FieldError:
    return errors.invalid(
        ROOT.child("involvedObject", "namespace"), namespace, "does not match event.namespace"
    )


def _check_old(event: Tree) -> Iterable[FieldError]:
    """An event without the newer time."""
    mine, its = meta.namespace(event), within(event, "involvedObject").get("namespace", "")
    fits = mine == its if its else mine in ("", "default")
    return () if fits else (_does_not_match(its),)


def _check_text(event: Tree, name: str, spelt: str) -> Iterator[FieldError]:
    text, path = event.get(name, ""), ROOT.child(spelt)
    if not text:
        yield errors.required(path)
    if len(text.encode()) > _LONGEST:
        yield errors.invalid(path, "", f"can have at most {_LONGEST} characters")


def _check_new(event: Tree, controller_spelt: str) -> Iterator[FieldError]:
    its = within(event, "involvedObject").get("namespace", "")
    if not its and meta.namespace(event) not in ("default", "kube-system"):
        yield _does_not_match(its)
    controller, path = event.get("reportingComponent", ""), ROOT.child(controller_spelt)
    if not controller:
        yield errors.required(path)
    for problem in names.check_label_key(controller):
        yield errors.invalid(path, controller, problem)
    for name in ("reportingInstance", "action", "reason"):
        yield from _check_text(event, name, name)
    if len(event.get("message", "").encode()) > _LONGEST_MESSAGE:
        yield errors.invalid(ROOT.child("message"), "", f"can have at most {_LONGEST_MESSAGE} characters")


def _check_every(event: Tree, controller_spelt: str) -> Iterator[FieldError]:
    if event.get("eventTime") is None:
        yield from _check_old(event)
    else:
        yield from _check_new(event, controller_spelt)
    for problem in names.check_dns1123_subdomain(meta.namespace(event)):
        yield errors.invalid(ROOT.child("namespace"), meta.namespace(event), problem)


def _create_core(event: Tree) -> Iterable[FieldError]:
    return _check_every(event, "reportingComponent")


def _update_core(new: Tree, _old: Tree) -> Iterable[FieldError]:
    return _create_core(new)


# --- events.k8s.io

_TO_BE_UNSET: Final = ("firstTimestamp", "lastTimestamp", "count", "source")
_UNCHANGED: Final = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime",
    "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip
_SPELT: Final = {"reportingComponent": "reportingController"}
_STRUCTS: Final = {
    "involvedObject": "core.ObjectReference",
    "source": "core.EventSource",
    "related": "core.ObjectReference",
}


def _check_series(event: Tree) -> Iterator[FieldError]:
    series, path = event.get("series"), ROOT.child("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield errors.invalid(path.child("count"), "", "should be at least 2")
    if series.get("lastObservedTime") is None:
        yield errors.required(path.child("lastObservedTime"))


def _check_type(event: Tree) -> Iterable[FieldError]:
    type_ = event.get("type", "")
    if type_ in ("Normal", "Warning"):
        return ()
    return (errors.invalid(ROOT.child("type"), "", f"has invalid value: {type_}"),)


def _create(sent: Tree) -> Iterator[FieldError]:
    event = _as_core(sent)
    yield from _check_every(event, "reportingController")
    yield from objectmeta.check(event, SUBDOMAIN, namespaced=True)
    yield from _check_series(event)
    if event.get("eventTime") is None:
        yield errors.required(ROOT.child("eventTime"))
    yield from _check_type(event)
    for name in _TO_BE_UNSET:
        if any(event[name].values()) if isinstance(event.get(name), Mapping) else event.get(name):
            yield errors.invalid(ROOT.child(name), "", "needs to be unset")


def _shown(name: str, value: Any) -> Any:
    return value if value is None or name not in _STRUCTS else internal(_STRUCTS[name], value)


def _update(sent: Tree, before: Tree) -> Iterator[FieldError]:
    """Only the series of an event goes on."""
    new, old = _as_core(sent), _as_core(before)
    yield from _check_every(new, "reportingController")
    if new.get("series") != old.get("series"):
        yield from _check_series(new)
    for name in _UNCHANGED:
        if (new.get(name) or None) != (old.get(name) or None):
            shown = _shown(name, new.get(name))
            yield errors.invalid(ROOT.child(_SPELT.get(name, name)), shown, IMMUTABLE)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("", "Event"): Validation(metadata_first=False, create=_create_core, update=_update_core),
    GroupKind("events.k8s.io", "Event"): Validation(metadata_first=False, create=_create, update=_update),
}
