"""What objects need that nobody has printed with them: their namespaces, and the service accounts that pods run as. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.importing.cleaning import NAMESPACE, POD, kind_of, spec_of


def implied(trees: Sequence[ReadOnlyTree]) -> Iterator[dict[str, Any]]:
    """To be made where they are not there."""
    there = {(kind_of(tree).kind, meta.namespace(tree), meta.name(tree)) for tree in trees}
    for namespace in sorted({meta.namespace(tree) for tree in trees} - {""}):
        if (NAMESPACE.kind, "", namespace) not in there:
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    accounts = {(meta.namespace(tree), _account(tree)) for tree in trees if kind_of(tree) == POD}
    for namespace, name in sorted(accounts):
        if ("ServiceAccount", namespace, name) not in there:
            metadata = {"name": name, "namespace": namespace}
            yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _account(pod: ReadOnlyTree) -> str:
    spec = spec_of(pod)
    return str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default")
