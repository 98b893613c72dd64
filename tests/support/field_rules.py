"""Helpers for tables of validation: an object with a few changes, and the errors about it as texts."""

from typing import Any, Final

from mockube.apiserver.kinds import kind_rules
from mockube.apiserver.kinds.built_in_kinds import NEWEST

ABSENT: Final = object()
"""The value of a field that is to be removed."""

_RESOURCES: Final = {(kind.resource.api_version, kind.resource.kind): kind.resource for kind in NEWEST.all}


def changed(tree: Any, changes: dict[str, Any]) -> Any:
    """Return a copy of a tree with other values at paths, as `spec.containers.0.image`."""
    for path, value in changes.items():
        tree = _replaced(tree, path.split("."), value)
    return tree


def _replaced(tree: Any, steps: list[str], value: Any) -> Any:
    if not steps:
        return value
    step, *rest = steps
    if isinstance(tree, list):
        index = int(step)
        old = tree[index] if index < len(tree) else None
        return [*tree[:index], _replaced(old, rest, value), *tree[index + 1 :]]
    tree = tree or {}
    new = _replaced(tree.get(step), rest, value)
    others = {name: item for name, item in tree.items() if name != step}
    if new is ABSENT:
        return others
    return {**tree, step: new}


def is_namespaced(api_version: str, kind: str) -> bool:
    return _RESOURCES[api_version, kind].namespaced


def create_errors(api_version: str, kind: str, tree: Any) -> list[str]:
    """Return the errors of a new object."""
    return [*map(str, kind_rules.check_create(_RESOURCES[api_version, kind], tree))]


def update_errors(api_version: str, kind: str, old: Any, new: Any, subresource: str = "") -> list[str]:
    """Return the errors of an update."""
    resource = _RESOURCES[api_version, kind]
    return [*map(str, kind_rules.check_update(resource, subresource, new, old))]
