"""RuntimeClass."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, checks
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.declared import DeclaredRules, immutable, required, valid
from mockube.apiserver.kinds.common.defaults import NOWHERE, defaults_table
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.node_labels import DEPRECATED
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN, check_labels, with_any_finalizers
from mockube.apiserver.kinds.common.validation import (
    CREATE_AND_CHANGE,
    Validation,
    from_root,
    immutable_fields,
)
from mockube.apiserver.kinds.common.warnings import on_create_and_update
from mockube.apiserver.kinds.core.pod.context import STRICT, PodContext
from mockube.apiserver.kinds.core.pod.resources import check_requirements
from mockube.apiserver.kinds.core.pod.scheduling import check_tolerations
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_NO_POD: Final = PodContext(spec={}, metadata=None, volumes={}, claims=frozenset(), options=STRICT)


def _check_overhead(amounts: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the overhead as if it were the limits of a container."""
    return check_requirements({"limits": amounts}, path, _NO_POD)


def _check_tolerations(tolerations: Sequence[ReadOnlyTree], path: Path) -> Iterator[FieldError]:
    yield from check_tolerations(tolerations, path, compared=False)
    seen = set()
    for index, toleration in enumerate(tolerations):
        text = checks.canonical(toleration)
        if text in seen:
            yield errors.duplicate(path.index(index), internal("core.Toleration", toleration))
        seen.add(text)


_CREATE: Final = from_root(
    checks.require("handler", checks.report(names.check_dns1123_label)),
    checks.pointer(
        "overhead",
        lambda overhead, path: _check_overhead(overhead.get("podFixed") or {}, path),
    ),
    checks.pointer(
        "scheduling",
        checks.field("nodeSelector", check_labels),
        checks.optional("tolerations", _check_tolerations),
    ),
)

_UNCHANGED: Final = immutable_fields("handler", absent="")


def _warn(runtime_class: ReadOnlyTree) -> Iterator[str]:
    selector = (runtime_class.get("scheduling") or {}).get("nodeSelector") or {}
    for key in sorted(DEPRECATED.keys() & selector.keys()):
        yield f"scheduling.nodeSelector: {DEPRECATED[key]}"


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "handler"), ages.age(tree, now)]


KIND: Final = Kind(
    resource=Resource(
        group="node.k8s.io", version="v1", name="runtimeclasses", kind="RuntimeClass", namespaced=False
    ),
    strategy=Strategy(create_on_update=True, unconditional_update=False),
    validation=Validation(
        repeated_checks=CREATE_AND_CHANGE,
        name=with_any_finalizers(SUBDOMAIN),
        create=_CREATE,
        update=_UNCHANGED,
        declared=DeclaredRules(immutable("handler"), required("handler"), valid("handler")),
    ),
    warnings=on_create_and_update(_warn),
    printer=Printer(columns=(NAME, Column(name="Handler"), AGE_COLUMN), cells=_cells),
    defaults=defaults_table("io.k8s.api.node.v1", {"RuntimeClass": NOWHERE}),
)
