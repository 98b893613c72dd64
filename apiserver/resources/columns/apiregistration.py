"""The columns of apiregistration.k8s.io."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import conditions, meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _api_service(tree: Tree, now: datetime) -> list[Any]:
    service = part(tree, "spec", "service")
    return [
        meta.name(tree),
        "Local" if service is None else f"{text(service, 'namespace')}/{text(service, 'name')}",
        _available(tree),
        ages.age(tree, now),
    ]


def _available(tree: Tree) -> str:
    """Whether it is, and if not, why."""
    condition = conditions.get(tree, "Available")
    status, reason = text(condition, "status", default="Unknown"), text(condition, "reason")
    return f"{status} ({reason})" if reason and status != "True" else status


PRINTERS: Final[Mapping[str, Printer]] = {
    "APIService": Printer(
        columns=(NAME, Column(name="Service"), Column(name="Available"), AGE), cells=_api_service
    ),
}
