"""Events of the core group and of events.k8s.io: one object with two sets of names."""

from typing import Final

from apiserver.storage.stored import Tree

CORE, EVENTS = "v1", "events.k8s.io/v1"

_CORE_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENTS_NAMES: Final = {core: name for name, core in _CORE_NAMES.items()}

_ALWAYS_IN_CORE: Final = {"reportingComponent": "", "reportingInstance": ""}
"""Written even when empty, in the core group only."""


def to_core(event: Tree) -> Tree:
    renamed = {_CORE_NAMES.get(name, name): value for name, value in event.items()}
    return renamed | {"apiVersion": CORE} | (_ALWAYS_IN_CORE | _only(renamed, _ALWAYS_IN_CORE))


def to_events(event: Tree) -> Tree:
    kept = {name: value for name, value in event.items() if value or name not in _ALWAYS_IN_CORE}
    return {_EVENTS_NAMES.get(name, name): value for name, value in kept.items()} | {"apiVersion": EVENTS}


def _only(event: Tree, names: Tree) -> Tree:
    return {name: event[name] for name in names if name in event}
