"""Namespaces: they end only when their own finalizers, in the spec, are gone."""

from apimachinery import meta
from apimachinery.groups import GroupResource
from apimachinery.wellknown import FINALIZER_NAMESPACE, LABEL_METADATA_NAME
from apiserver.resources.strategy import MAIN, SPEC, STATUS, Request, Strategy, Tree


def _prepare_create(tree: Tree, _request: Request) -> None:
    spec = tree.get("spec") or {}
    finalizers = spec.get("finalizers") or []
    tree["spec"] = spec | {"finalizers": [*finalizers, *({FINALIZER_NAMESPACE} - {*finalizers})]}
    tree["status"] = {"phase": "Active"}
    _label(tree)


def _prepare_update(new: Tree, _old: Tree, _request: Request) -> None:
    _label(new)


def _label(tree: Tree) -> None:
    """Every namespace carries its name as a label, so that selectors can name it."""
    tree["metadata"]["labels"] = {**meta.labels(tree), LABEL_METADATA_NAME: meta.name(tree)}


def _pending(tree: Tree) -> bool:
    return bool(meta.finalizers(tree) or (tree.get("spec") or {}).get("finalizers"))


def _prepare_delete(tree: Tree) -> None:
    tree["metadata"].pop("deletionGracePeriodSeconds", None)
    tree["status"] = tree.get("status", {}) | {"phase": "Terminating"}


NAMESPACES = Strategy(
    resets={
        MAIN: (*STATUS, ("spec", "finalizers")),
        "status": SPEC,
        "finalize": STATUS,
    },
    prepare_create=_prepare_create,
    prepare_update={MAIN: _prepare_update, "status": _prepare_update, "finalize": _prepare_update},
    pending=_pending,
    prepare_delete=_prepare_delete,
)

STRATEGIES = {GroupResource("", "namespaces"): NAMESPACES}
