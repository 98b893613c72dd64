"""ComponentStatus, and Binding: the kinds of the core group that are not stored."""

from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.cells import items, text
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.wire.table import NAME, Column, Printer


def _component_status(component: Tree, _: datetime) -> list[Any]:
    health_conditions = (each for each in items(component, "conditions") if text(each, "type") == "Healthy")
    condition = next(health_conditions, None)
    return [meta.name(component), _health(condition), text(condition, "message"), text(condition, "error")]


def _health(condition: Any) -> str:
    if condition is None:
        return "Unknown"
    return "Healthy" if text(condition, "status") == "True" else "Unhealthy"


COMPONENT_STATUS: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="componentstatuses",
        kind="ComponentStatus",
        namespaced=False,
        short_names=("cs",),
        deprecated="v1 ComponentStatus is deprecated in v1.19+",
        verbs=("get", "list"),
    ),
    printer=Printer(
        columns=(NAME, Column(name="Status"), Column(name="Message"), Column(name="Error")),
        cells=_component_status,
    ),
)


BINDING: Final = Kind(
    resource=Resource(group="", version="v1", name="bindings", kind="Binding", verbs=("create",)),
)
