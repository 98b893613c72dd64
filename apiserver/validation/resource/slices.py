"""ResourceSlices: which devices there are, and where."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import Path
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_label_name
from apiserver.validation.node_selectors import check_node_selector
from apiserver.validation.objects import again, created, together, unchanged
from apiserver.validation.resource.values import (
    check_driver,
    check_effect,
    check_label,
    check_pool_name,
    check_qualified_name,
    check_subdomain,
    items,
)
from apiserver.validation.rules import (
    Tree,
    every,
    field,
    must,
    no_longer_than,
    optional,
    pointer,
    positive,
    required,
    unique,
    valid,
)

_MOST_DEVICES: Final = 128
_MOST_ATTRIBUTES: Final = 32
_MOST_TAINTS: Final = 16
_LONGEST_VALUE: Final = 64


# --- devices

_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_NOT_A_VERSION: Final = "must be a string compatible with semver.org spec 2.0.0"


def _is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


_VALUES: Final = every(
    pointer("string", no_longer_than(_LONGEST_VALUE)),
    pointer("version", must(_is_version, _NOT_A_VERSION), no_longer_than(_LONGEST_VALUE)),
)
_KINDS: Final = ("bool", "int", "string", "version")


def _check_attribute(attribute: Tree, path: Path) -> Iterator[FieldError]:
    yield from _VALUES(attribute, path)
    present = sum(attribute.get(name) is not None for name in _KINDS)
    if not present:
        yield errors.required(path, "exactly one value must be specified")
    elif present > 1:
        shown = internal("resource.DeviceAttribute", attribute)
        yield errors.invalid(path, shown, "exactly one value must be specified")


def _check_described(device: Tree, path: Path) -> Iterator[FieldError]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    for name, attribute in attributes.items():
        yield from check_qualified_name(name, path.child("attributes").key(name))
        yield from _check_attribute(attribute, path.child("attributes").key(name))
    for name in capacity:
        yield from check_qualified_name(name, path.child("capacity").key(name))
    count = len(attributes) + len(capacity)
    if count > _MOST_ATTRIBUTES:
        problem = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
        yield errors.invalid(path, count, problem)


_TAINT: Final = every(
    field("key", check_label_name, absent=""),
    optional("value", valid(names.check_label_value)),
    required("effect", check_effect),
)
_DEVICE: Final = every(
    field("name", check_label, absent=""),
    _check_described,
    field("taints", items(_MOST_TAINTS, _TAINT)),
)


# --- where they are

_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)


def _check_one_term(selector: Tree, path: Path) -> Iterable[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    if len(terms) == 1:
        return ()
    shown = [internal("core.NodeSelectorTerm", term) for term in terms]
    problem = "must have exactly one node selector term"
    return (errors.invalid(path.child("nodeSelectorTerms"), shown, problem),)


def _check_place(spec: Tree, path: Path) -> Iterator[FieldError]:
    present = [f"`{name}`" for name in _PLACES if spec.get(name)]
    yield from optional("nodeName", check_subdomain)(spec, path)
    yield from pointer("nodeSelector", check_node_selector, _check_one_term)(spec, path)
    if not present:
        yield errors.required(path, _ONE_PLACE)
    elif len(present) > 1:
        problem = f"{_ONE_PLACE}, but multiple fields are set"
        yield errors.invalid(path, f"{{{', '.join(present)}}}", problem)


_POOL: Final = every(
    required("name", check_pool_name),
    field("resourceSliceCount", positive, absent=0),
    field("generation", must(lambda value: value >= 0, "must be greater than or equal to zero"), absent=0),
)
_CREATE: Final = created(
    field(
        "spec",
        check_driver,
        field("pool", _POOL, absent={}),
        _check_place,
        field("devices", items(_MOST_DEVICES, _DEVICE), unique("name")),
        absent={},
    )
)

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("resource.k8s.io", "ResourceSlice"): Validation(
        create=_CREATE,
        update=together(
            again(_CREATE),
            unchanged("spec", "pool", "name"),
            unchanged("spec", "driver"),
            unchanged("spec", "nodeName"),
        ),
    ),
}
