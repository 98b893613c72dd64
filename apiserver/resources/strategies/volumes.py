"""Storage: claims and volumes, which wait to be bound, and what describes how they are provided."""

from apimachinery.groups import GroupResource
from apimachinery.timestamps import format_time
from apiserver.resources.strategies.empty_lists import none_when_empty
from apiserver.resources.strategy import MAIN, METADATA, SPEC, STATUS, Request, Strategy, Tree

PHASE_TIME = "lastPhaseTransitionTime"

_SOURCES = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})
"""What `dataSource` may name; `dataSourceRef` may name anything."""


def _begin_volume(volume: Tree, request: Request) -> None:
    volume["status"] = {"phase": "Pending", PHASE_TIME: format_time(request.now)}


def _note_phase(new: Tree, old: Tree, request: Request) -> None:
    """Say since when the phase is what it is, unless the client does."""
    status, before = new.get("status") or {}, old.get("status") or {}
    since = status.get(PHASE_TIME)
    if status.get("phase") != before.get("phase") and since in (None, before.get(PHASE_TIME)):
        new["status"] = status | {PHASE_TIME: format_time(request.now)}


def _begin_claim(claim: Tree, _request: Request) -> None:
    claim["status"] = {"phase": "Pending"}
    spec = claim["spec"]
    source = spec.get("dataSource")
    if source and (source.get("apiGroup", ""), source.get("kind", "")) not in _SOURCES:
        spec = {field: value for field, value in spec.items() if field != "dataSource"}
    claim["spec"] = _with_both_sources(spec)


def _prepare_claim(new: Tree, _old: Tree, _request: Request) -> None:
    new["spec"] = _with_both_sources(new["spec"])


def _with_both_sources(spec: Tree) -> Tree:
    """A source that one of the two fields names is named by the other too, as far as it can be."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        return spec | {"dataSourceRef": dict(source)}
    if reference and not source and not reference.get("namespace"):
        return spec | {"dataSource": dict(reference)}
    return spec


_write_lists = none_when_empty(("spec", "drivers"), ("spec", "drivers", "*", "topologyKeys"))


def _begin_node(node: Tree, _request: Request) -> None:
    _write_lists(node)


def _update_node(new: Tree, _old: Tree, _request: Request) -> None:
    """Its drivers may not change, and no keys are no other keys than none."""
    _write_lists(new)


KEPT = Strategy(returns_deleted=True)

STRATEGIES = {
    GroupResource("", "persistentvolumes"): Strategy(
        prepare_create=_begin_volume, prepare_update={"status": _note_phase}, returns_deleted=True
    ),
    GroupResource("", "persistentvolumeclaims"): Strategy(
        prepare_create=_begin_claim, prepare_update={MAIN: _prepare_claim}, returns_deleted=True
    ),
    GroupResource("storage.k8s.io", "csidrivers"): Strategy(
        generation=SPEC, returns_deleted=True, unconditional_update=False
    ),
    GroupResource("storage.k8s.io", "csinodes"): Strategy(
        returns_deleted=True,
        unconditional_update=False,
        prepare_create=_begin_node,
        prepare_update={MAIN: _update_node},
    ),
    GroupResource("storage.k8s.io", "csistoragecapacities"): Strategy(unconditional_update=False),
    GroupResource("storage.k8s.io", "storageclasses"): KEPT,
    GroupResource("storage.k8s.io", "volumeattachments"): Strategy(
        resets={MAIN: STATUS, "status": (*SPEC, *METADATA)}, returns_deleted=True, unconditional_update=False
    ),
    GroupResource("storage.k8s.io", "volumeattributesclasses"): KEPT,
}
