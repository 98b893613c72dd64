"""The objects that a method is about: a kind and a name, `KIND/NAME`, or the objects themselves, as manifests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mockube.apimachinery import meta

from .errors import InvalidType, InvalidValue
from .manifests import SUFFIXES, is_text, read_objects
from .resource_names import check_kind
from .trees import is_model


class ObjectName(NamedTuple):
    """An object that a user named."""

    kind: str
    """The kind as the user wrote it, or of the object."""
    name: str
    namespace: str
    """The namespace; it does not count if the kind is cluster-scoped."""
    api_version: str = ""
    """The apiVersion of an object that was passed; "" for the server's preferred version."""


class Targets(NamedTuple):
    names: list[ObjectName]
    is_single: bool
    """Whether the user named one object, so that the result is no list."""


def read_targets(target: Any, name: Any, namespace: Any) -> Targets:
    """Return the named objects. `name` is None unless `target` is a kind."""
    check_namespace(namespace)
    if name is not None:
        check_kind(target)
        check_name(name)
        return Targets([ObjectName(target, name, namespace)], is_single=True)
    if is_kind(target):
        raise InvalidValue(f'"{target}" names no object: write the kind and the name, or "KIND/NAME"')
    if isinstance(target, str) and not is_text(target) and not _is_path(target):
        kind, _, object_name = target.partition("/")
        check_kind(kind)
        check_name(object_name)
        return Targets([ObjectName(kind, object_name, namespace)], is_single=True)
    names = [_object_name(tree, namespace) for tree in read_objects(target)]
    return Targets(names, is_single=len(names) == 1 and (isinstance(target, Mapping) or is_model(target)))


def is_kind(target: Any) -> bool:
    """Return whether a user named a kind, and no object of it."""
    return isinstance(target, str) and "/" not in target and not is_text(target) and not _is_path(target)


def read_target(target: Any, name: Any, namespace: Any) -> ObjectName:
    """Return one named object; raise InvalidValue for several."""
    names = read_targets(target, name, namespace).names
    if len(names) != 1:
        raise InvalidValue(f"the method takes one object, not {len(names)}")
    return names[0]


def read_pod_target(target: Any, namespace: Any) -> ObjectName:
    """Return the pod, or the object with pods, that a str or an object names. A str without a slash names a pod."""
    if isinstance(target, str) and "/" not in target and not is_text(target):
        return read_target("Pod", target, namespace)
    return read_target(target, None, namespace)


def check_name(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidType(f"a name is a str, not {type(name).__name__}")
    if not name:
        raise InvalidValue("the name is empty")
    if "/" in name or name in {".", ".."}:
        raise InvalidValue(f'"{name}" is not a name: it must not contain "/", or be "." or ".."')
    if any(character.isspace() for character in name):
        raise InvalidValue(
            f'"{name}" is not a name: objects are selected by their labels with list(kind, labels=...)'
        )


def check_namespace(namespace: object) -> None:
    """Check a namespace; "" is allowed, for all namespaces of a list."""
    if not isinstance(namespace, str):
        raise InvalidType(f"a namespace is a str, not {type(namespace).__name__}")
    if namespace:
        check_name(namespace)


def _is_path(target: str) -> bool:
    """Return whether a str is a path, not `KIND/NAME`: there is a file or folder of this name, or it ends like a file."""
    if target.endswith(SUFFIXES):
        return True
    try:
        return bool(target) and Path(target).exists()
    except OSError:  # too long for a path
        return False


def _object_name(tree: Mapping[str, Any], namespace: str) -> ObjectName:
    name = meta.name(tree)
    if not name:
        raise InvalidValue(f"the {meta.kind(tree)} has no metadata.name")
    check_name(name)
    return ObjectName(
        meta.kind(tree), name, meta.namespace(tree) or namespace, api_version=meta.api_version(tree)
    )
