"""Whose service a slice is, by the labels that say so: for whoever manages slices. Pure."""

from collections.abc import Iterable, Iterator

from apimachinery import meta
from apimachinery.wellknown import LABEL_ENDPOINT_SLICE_MANAGED_BY, LABEL_SERVICE_NAME
from controller_manager.runtime.caches import Caches, Change, Indexer
from controller_manager.runtime.controller import ToKeys
from controller_manager.runtime.resource import Key, Tree


def by_service(manager: str) -> Indexer:
    """The index of a manager's slices by the key of their service; slices of others are not in it."""

    def index(one: Tree) -> Iterable[str]:
        labels = meta.labels(one)
        if labels.get(LABEL_ENDPOINT_SLICE_MANAGED_BY) != manager or not labels.get(LABEL_SERVICE_NAME):
            return ()
        return (str(Key(meta.namespace(one), labels[LABEL_SERVICE_NAME])),)

    return index


def keys_of_services(index: Indexer) -> ToKeys:
    """The services that a slice was of, or is."""

    def keys(_: Caches, change: Change) -> Iterator[Key]:
        for one in change:
            for name in index(one) if one is not None else ():
                yield Key(*name.split("/", 1))

    return keys
