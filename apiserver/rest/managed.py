"""Who manages which fields, kept in `metadata.managedFields` at every write."""

from apiserver.rest.backend import Backend
from apiserver.rest.call import Call
from apiserver.rest.options import WriteOptions
from apiserver.storage.stored import Tree


def on_create(backend: Backend, call: Call, tree: Tree, options: WriteOptions) -> None:
    """To come."""


def on_update(backend: Backend, call: Call, new: Tree, old: Tree, options: WriteOptions) -> None:
    """To come."""
