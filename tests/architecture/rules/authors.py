"""Rule: every write of the server has an author, so that it goes through `Backend.commit` and not to the store itself."""

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.source import Finding, Module

SERVER = "apiserver/"
_WRITES = frozenset({"delete", "put", "revoke", "txn"})
"""A lease that is revoked deletes its keys."""
_STORES = frozenset({"_kv", "kv"})

ALLOWED: Mapping[str, str] = {
    "apiserver/storage/journal.py": "it notes the author",
    "apiserver/storage/traced_kv.py": "it is a store",
    "apiserver/metrics/measured_kv.py": "it is a store",
}


def check(module: Module, allowed: Mapping[str, str] = ALLOWED) -> Iterator[Finding]:
    if not module.path.startswith(SERVER) or module.path in allowed:
        return
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRITES:
            store = node.func.value
            name = store.attr if isinstance(store, ast.Attribute) else getattr(store, "id", "")
            if name in _STORES:
                yield Finding(node.lineno, f"{name}.{node.func.attr} has no author: use Backend.commit")
