"""The parameter objects of a policy, which a binding selects."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import labels
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Backend

_NONE: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"


class BadConfiguration(Exception):
    """A policy or a binding has an invalid configuration."""


def param_row(backend: Backend, kind: ReadOnlyTree | None) -> Resource | None:
    """Return the resource of the parameters; None if a policy has none."""
    if kind is None:
        return None
    group, _, version = kind["apiVersion"].rpartition("/")
    for row in backend.rows.values():
        if row.group == group and row.kind == kind["kind"]:
            return row
    group_version_kind = f"{group}/{version}, Kind={kind['kind']}"
    raise BadConfiguration(f"failed to find resource referenced by paramKind: '{group_version_kind}'")


def collect(
    backend: Backend, row: Resource | None, reference: ReadOnlyTree | None, namespace: str
) -> Sequence[Tree | None]:
    """Return the params that a policy is evaluated with, one at a time; one None if it has no paramKind."""
    if row is None or reference is None:
        return (None,)
    params_namespace = _namespace(row, reference, namespace)
    params: list[Tree] = []
    if name := reference.get("name"):
        stored = backend.find_cached(row.group_resource, params_namespace, name)
        params = [] if stored is None else [stored.tree()]
    else:
        selector = labels.from_label_selector(reference.get("selector") or {})
        candidates = backend.list_cached(row.group_resource, params_namespace)
        params = [stored.tree() for stored in candidates if selector.matches(stored.labels)]
    if not params and reference.get("parameterNotFoundAction") == "Deny":
        raise BadConfiguration(_NONE)
    return params


def _namespace(row: Resource, reference: ReadOnlyTree, namespace: str) -> str:
    reference_namespace: str = reference.get("namespace") or ""
    if not row.namespaced:
        if reference_namespace:
            raise BadConfiguration("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not reference_namespace and not namespace:
        problem = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        raise BadConfiguration(problem)
    return reference_namespace or namespace
