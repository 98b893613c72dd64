"""Namespace. It is deleted only after the finalizers in its spec are removed."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import FINALIZER_NAMESPACE, LABEL_METADATA_NAME
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import STATUS, Resource, Subresource
from mockube.apiserver.kinds.common import ages, validation
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.checks import Check, each_item, field, report
from mockube.apiserver.kinds.common.defaults import defaults_table, set_labels
from mockube.apiserver.kinds.common.objectmeta import LABEL
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import FOREGROUND, MAIN, SPEC, Strategy, StrategyContext
from mockube.apiserver.kinds.strategy import STATUS as STATUS_PATHS
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_FINALIZER: Final[Check] = report(names.check_kube_finalizer_name)


def _check_finalizers(finalizers: Sequence[str] | None, path: Path) -> Iterator[FieldError]:
    """Check the finalizers of a namespace. Errors have no index."""
    for finalizer in finalizers or ():
        yield from _FINALIZER(finalizer, path)


def _update_status(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check that a namespace is Terminating if and only if it is being deleted. Upstream's path has the field's Go name."""
    phase = validation.get_struct(new, "status").get("phase", "")
    deleting = meta.is_deleting(new)
    if phase == ("Terminating" if deleting else "Active"):
        return ()
    path = ROOT.child("status", "Phase")
    if deleting:
        return (errors.invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"),)
    return (errors.invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty"),)


def _prepare_create(tree: Tree, _request: StrategyContext) -> None:
    spec = tree.get("spec") or {}
    finalizers = spec.get("finalizers") or []
    tree["spec"] = spec | {"finalizers": [*finalizers, *({FINALIZER_NAMESPACE} - {*finalizers})]}
    tree["status"] = {"phase": "Active"}


def _prepare_update(new: Tree, old: Tree, _request: StrategyContext) -> None:
    """Keep the finalizers of the spec, which only /finalize changes. A client that sends them still becomes their manager."""
    new["spec"] = (new.get("spec") or {}) | {"finalizers": (old.get("spec") or {}).get("finalizers", [])}
    if not new["spec"]["finalizers"]:
        del new["spec"]["finalizers"]


def _set_name_label(tree: Tree) -> None:
    """Set the label with the namespace's name. The default cannot do that for a generated name."""
    tree["metadata"]["labels"] = {**meta.labels(tree), LABEL_METADATA_NAME: meta.name(tree)}


def _is_pending(tree: Tree) -> bool:
    return bool(meta.finalizers(tree) or (tree.get("spec") or {}).get("finalizers"))


def _prepare_delete(tree: Tree) -> None:
    tree["status"] = tree.get("status", {}) | {"phase": "Terminating"}


def _default_name_label(namespace: Tree) -> None:
    """Set the label with the namespace's name, for selectors, unless the name will be generated."""
    metadata = namespace["metadata"]
    if "name" in metadata:
        set_labels(metadata, metadata.get("labels", {}) | {LABEL_METADATA_NAME: metadata["name"]})


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "status", "phase"), ages.age(tree, now)]


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="namespaces",
        kind="Namespace",
        namespaced=False,
        short_names=("ns",),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        selectable=(selectable("status.phase"),),
        subresources=(
            Subresource(name="finalize", verbs=("update",)),
            STATUS,
        ),
    ),
    strategy=Strategy(
        resets={
            MAIN: STATUS_PATHS,
            "status": SPEC,
            "finalize": STATUS_PATHS,
        },
        cascading=FOREGROUND,
        checks_preconditions=True,
        prepare_create=_prepare_create,
        prepare_update={MAIN: _prepare_update},
        canonicalize=_set_name_label,
        pending=_is_pending,
        marks_first=True,
        has_plain_deletion=True,
        prepare_delete=_prepare_delete,
    ),
    validation=Validation(
        repeated_checks=validation.CREATE_AND_CHANGE,
        name=LABEL,
        create=validation.from_root(field("spec", field("finalizers", _check_finalizers), absent={})),
        subresources={
            "status": _update_status,
            "finalize": validation.part(field("finalizers", each_item(_FINALIZER)), "spec"),
        },
    ),
    printer=Printer(columns=(NAME, Column(name="Status"), AGE_COLUMN), cells=_cells),
    defaults=defaults_table(
        "io.k8s.api.core.v1", {"Namespace": _default_name_label, "NamespaceStatus": {"phase": "Active"}}
    ),
)
