"""Storage classes: which one a claim or a volume has, which is the default, and when claims of one are bound."""

from collections.abc import Iterable

from apimachinery import meta
from apimachinery.wellknown import ANNOTATION_DEFAULT_STORAGE_CLASS
from controller_manager.runtime.resource import Tree
from controller_manager.storage.names import BETA_DEFAULT_CLASS, BETA_STORAGE_CLASS


def class_name(obj: Tree) -> str:
    """Of a claim or a volume; empty if it has none."""
    annotated = meta.annotations(obj).get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else obj["spec"].get("storageClassName") or ""


def says_its_class(claim: Tree) -> bool:
    """Also a claim that says it wants none says so: it gets no default."""
    return BETA_STORAGE_CLASS in meta.annotations(claim) or claim["spec"].get("storageClassName") is not None


def default_class(classes: Iterable[Tree]) -> Tree | None:
    """Of several the newest."""
    defaults = sorted(filter(_is_default, classes), key=meta.name)
    return max(defaults, key=lambda it: meta.metadata(it).get("creationTimestamp") or "", default=None)


def _is_default(storage_class: Tree) -> bool:
    present = meta.annotations(storage_class)
    return "true" in (present.get(ANNOTATION_DEFAULT_STORAGE_CLASS), present.get(BETA_DEFAULT_CLASS))


def waits_for_consumer(storage_class: Tree | None) -> bool:
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
