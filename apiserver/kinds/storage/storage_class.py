"""StorageClass, and the checks that it shares with VolumeAttributesClass."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, Final

from mockube.apimachinery import errors, meta, wellknown
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, checks, validation
from mockube.apiserver.kinds.common.cells import flag, is_default, name_with_default, text
from mockube.apiserver.kinds.common.declared import DeclaredRules, immutable, required
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.node_labels import DEPRECATED
from mockube.apiserver.kinds.common.objectmeta import check_label_name
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import on_create_and_update
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import RETURNS_DELETED
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_MAX_PARAMETERS: Final = 512
_MAX_PARAMETERS_BYTES: Final = 256 * 1024
_MAX_DUPLICATES: Final = 4_000
"""The maximum number of errors of equal terms. It could grow with the square of the terms, but the message is shortened."""


def check_provisioner(name: str, path: Path) -> Iterator[FieldError]:
    yield from check_label_name(name.lower(), path)


def check_parameters(parameters: ReadOnlyTree | None, path: Path) -> Iterator[FieldError]:
    if len(parameters or ()) > _MAX_PARAMETERS:
        yield errors.too_long(path, _MAX_PARAMETERS)
        return
    size = 0
    for key, value in (parameters or {}).items():
        if not key:
            yield errors.invalid(path, key, "field can not be empty.")
        size += len(key.encode()) + len(value.encode())
    if size > _MAX_PARAMETERS_BYTES:
        yield errors.too_long(path, _MAX_PARAMETERS_BYTES)


_REQUIREMENT: Final = checks.all_of(
    checks.require("values", checks.unique()), checks.field("key", check_label_name, absent="")
)
_TERM: Final = checks.field("matchLabelExpressions", checks.each_item(_REQUIREMENT), checks.unique("key"))


def _values_by_key(term: ReadOnlyTree) -> frozenset[tuple[str, frozenset[str]]]:
    values_by_key = {
        expression.get("key", ""): frozenset(expression.get("values") or ())
        for expression in (term.get("matchLabelExpressions") or ())
    }
    return frozenset(values_by_key.items())


def _check_topologies(terms: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    """Check the terms. A term has one error for each equal earlier term.

    Upstream's list of earlier terms begins with as many empty ones as there are terms.
    """
    counts = Counter({frozenset[tuple[str, frozenset[str]]](): len(terms or ())})
    reported = 0
    for index, term in enumerate(terms or ()):
        yield from _TERM(term, path.index(index))
        values = _values_by_key(term)
        repeats = min(counts[values], _MAX_DUPLICATES - reported)
        yield from repeat(errors.duplicate(path.index(index).child("matchLabelExpressions"), ""), repeats)
        reported += repeats
        counts[values] += 1


_CREATE: Final = validation.from_root(
    checks.require("provisioner", check_provisioner),
    checks.field("parameters", check_parameters),
    checks.optional("reclaimPolicy", checks.one_of("Delete", "Retain")),
    checks.field("volumeBindingMode", checks.one_of("Immediate", "WaitForFirstConsumer"), absent=""),
    checks.field("allowedTopologies", _check_topologies),
)


def _warn(storage_class: ReadOnlyTree) -> Iterator[str]:
    for index, topology in enumerate(storage_class.get("allowedTopologies") or ()):
        path = ROOT.child("allowedTopologies").index(index).child("matchLabelExpressions")
        for number, expression in enumerate(topology.get("matchLabelExpressions") or ()):
            if (key := expression.get("key")) in DEPRECATED:
                yield f"{path.index(number).child('key')}: {DEPRECATED[key]}"


_DEFAULT_ANNOTATIONS: Final = (
    wellknown.ANNOTATION_DEFAULT_STORAGE_CLASS,
    wellknown.ANNOTATION_BETA_DEFAULT_STORAGE_CLASS,
)
_COLUMNS: Final = (
    NAME,
    Column(name="Provisioner"),
    Column(name="ReclaimPolicy"),
    Column(name="VolumeBindingMode"),
    Column(name="AllowVolumeExpansion"),
    AGE_COLUMN,
)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        text(tree, "provisioner"),
        text(tree, "reclaimPolicy", default="Delete"),
        text(tree, "volumeBindingMode", default="Immediate"),
        flag(tree, "allowVolumeExpansion"),
        ages.age(tree, now),
    ]


def _of_list(classes: Sequence[Tree]) -> Printer:
    """Return the printer that marks the class with effect: of several defaults the newest, then the first by name."""
    defaults = sorted((each for each in classes if is_default(each, *_DEFAULT_ANNOTATIONS)), key=meta.name)
    times = [text(each, "metadata", "creationTimestamp") for each in defaults]
    marked = meta.name(defaults[times.index(max(times))]) if defaults else ""

    def cells(tree: Tree, now: datetime) -> list[Any]:
        name, *others = _cells(tree, now)
        return [f"{name} (default)" if name == marked else name, *others]

    return Printer(columns=_COLUMNS, cells=cells)


def _older_cells(tree: Tree, now: datetime) -> list[Any]:
    return [name_with_default(tree, *_DEFAULT_ANNOTATIONS), *_cells(tree, now)[1:]]


OLDER_PRINTER: Final = Printer(columns=_COLUMNS, cells=_older_cells)
"""The printer of minors that mark every default."""


KIND: Final = Kind(
    resource=Resource(
        group="storage.k8s.io",
        version="v1",
        name="storageclasses",
        kind="StorageClass",
        namespaced=False,
        short_names=("sc",),
    ),
    strategy=RETURNS_DELETED,
    validation=Validation(
        repeated_checks=validation.CREATE_AND_CHANGE,
        create=_CREATE,
        update=validation.in_order(
            *map(
                validation.immutable_fields,
                ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
            ),
        ),
        declared=DeclaredRules(
            required("provisioner"),
            *map(immutable, ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")),
        ),
    ),
    warnings=on_create_and_update(_warn),
    printer=Printer(columns=_COLUMNS, cells=_cells, of_list=_of_list),
    defaults=defaults_table(
        "io.k8s.api.storage.v1",
        {"StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}},
    ),
)
