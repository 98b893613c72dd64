"""VolumeAttributesClass."""

from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, validation
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.checks import require
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import RETURNS_DELETED
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .storage_class import check_parameters, check_provisioner

_CREATE: Final = validation.from_root(
    require("driverName", check_provisioner),
    require("parameters", check_parameters, detail="must contain at least one key/value pair"),
)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "driverName"), ages.age(tree, now)]


KIND: Final = Kind(
    resource=Resource(
        group="storage.k8s.io",
        version="v1",
        name="volumeattributesclasses",
        kind="VolumeAttributesClass",
        namespaced=False,
        short_names=("vac",),
    ),
    strategy=RETURNS_DELETED,
    validation=Validation(
        create=_CREATE,
        update=validation.in_order(
            validation.not_updated("driverName", "updates to driverName are forbidden."),
            validation.not_updated("parameters", "updates to parameters are forbidden."),
            validation.as_created(_CREATE, namespaced=False),
        ),
    ),
    printer=Printer(columns=(NAME, Column(name="DriverName"), AGE_COLUMN), cells=_cells),
)
