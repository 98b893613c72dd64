"""Namespaces: they end only when their own finalizers, in the spec, are gone."""

from apiserver.resources.strategy import MAIN, Strategy, Tree

FINALIZER = "kubernetes"


def _prepare_create(tree: Tree) -> None:
    spec = tree.setdefault("spec", {})
    if FINALIZER not in spec.setdefault("finalizers", []):
        spec["finalizers"] = [*spec["finalizers"], FINALIZER]
    tree["status"] = {"phase": "Active"}
    _label(tree)


def _prepare_update(new: Tree, _old: Tree) -> None:
    _label(new)


def _label(tree: Tree) -> None:
    """Every namespace carries its name as a label, so that selectors can name it."""
    metadata = tree["metadata"]
    metadata["labels"] = metadata.get("labels", {}) | {"kubernetes.io/metadata.name": metadata["name"]}


def _pending(tree: Tree) -> bool:
    return bool(tree["metadata"].get("finalizers") or tree.get("spec", {}).get("finalizers"))


def _prepare_delete(tree: Tree) -> None:
    tree["metadata"].pop("deletionGracePeriodSeconds", None)
    tree["status"] = tree.get("status", {}) | {"phase": "Terminating"}


NAMESPACES = Strategy(
    resets={
        MAIN: (("status",), ("spec", "finalizers")),
        "status": (("spec",),),
        "finalize": (("status",), ("metadata", "labels"), ("metadata", "annotations")),
    },
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    pending=_pending,
    prepare_delete=_prepare_delete,
)
