"""Conversion of resource.k8s.io/v1beta1, where requests have no field `exactly`, and devices have a field `basic`."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.defaults import Table, defaults_table

_EXACT_COUNT: Final = "ExactCount"
_EXACTLY: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
"""The fields of a request that v1 has in `exactly`."""


def _default_request(request: Tree) -> None:
    if not request.get("deviceClassName"):
        return
    mode = request.setdefault("allocationMode", _EXACT_COUNT) or _EXACT_COUNT
    request["allocationMode"] = mode
    if mode == _EXACT_COUNT and not request.get("count"):
        request["count"] = 1


DEFAULTS: Final[Table] = defaults_table("io.k8s.api.resource.v1beta1", {"DeviceRequest": _default_request})


def _exact_request(request: Tree) -> Tree:
    exactly = {name: request[name] for name in _EXACTLY if request.get(name) not in (None, "", 0)}
    rest = {name: value for name, value in request.items() if name not in _EXACTLY}
    if not exactly:
        return rest
    exact_request: Tree = {"name": rest.pop("name", ""), "exactly": {"deviceClassName": "", **exactly}}
    return exact_request | rest


def _flat_request(request: Tree) -> Tree:
    rest = {name: value for name, value in request.items() if name != "exactly"}
    exactly = {"deviceClassName": "", **(request.get("exactly") or {})}
    return {"name": rest.pop("name", ""), **exactly, **rest}


def _plain_device(device: Tree) -> Tree:
    return {"name": device.get("name", ""), **(device.get("basic") or {})}


def _basic_device(device: Tree) -> Tree:
    return {
        "name": device.get("name", ""),
        "basic": {name: value for name, value in device.items() if name != "name"},
    }


def _change_elements(tree: Tree, path: tuple[str, ...], change: Callable[[Tree], Tree]) -> Tree:
    """Return a tree with each element of a list changed; a tree without the list is returned as it is."""
    name, *rest = path
    value: Any = tree.get(name)
    if not value:
        return tree
    new_value = _change_elements(value, tuple(rest), change) if rest else [change(each) for each in value]
    return {**tree, name: new_value}


_REQUESTS: Final = ("spec", "devices", "requests")
_TEMPLATE_REQUESTS: Final = ("spec", *_REQUESTS)
_DEVICES: Final = ("spec", "devices")


def claim_to_stored(tree: Tree) -> Tree:
    return _change_elements(tree, _REQUESTS, _exact_request)


def claim_from_stored(tree: Tree) -> Tree:
    return _change_elements(tree, _REQUESTS, _flat_request)


def template_to_stored(tree: Tree) -> Tree:
    return _change_elements(tree, _TEMPLATE_REQUESTS, _exact_request)


def template_from_stored(tree: Tree) -> Tree:
    return _change_elements(tree, _TEMPLATE_REQUESTS, _flat_request)


def slice_to_stored(tree: Tree) -> Tree:
    stored_slice = _change_elements(tree, _DEVICES, _plain_device)
    spec = stored_slice.get("spec")
    if not spec:
        return stored_slice
    return {
        **stored_slice,
        "spec": {name: value for name, value in spec.items() if name not in _OMITTED or value},
    }


def slice_from_stored(tree: Tree) -> Tree:
    return _change_elements(tree, _DEVICES, _basic_device)


_OMITTED: Final = ("nodeName", "allNodes")
"""Fields of a slice whose empty values are omitted: they are pointers only in v1."""
