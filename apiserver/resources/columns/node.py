"""The columns of node.k8s.io."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _runtime_class(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "handler"), ages.age(tree, now)]


PRINTERS: Final[Mapping[str, Printer]] = {
    "RuntimeClass": Printer(columns=(NAME, Column(name="Handler"), AGE), cells=_runtime_class),
}
