"""The columns of resource.k8s.io."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import items, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _named(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), ages.age(tree, now)]


def _resource_claim(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), ",".join(_states(tree)), ages.age(tree, now)]


def _states(claim: Tree) -> list[str]:
    deleted = ["deleted"] if meta.is_deleting(claim) else []
    if part(claim, "status", "allocation") is None:
        return deleted or ["pending"]
    reserved = ["reserved"] if items(claim, "status", "reservedFor") else []
    return [*deleted, "allocated", *reserved]


def _resource_slice(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        text(tree, "spec", "nodeName"),
        text(tree, "spec", "driver"),
        text(tree, "spec", "pool", "name"),
        ages.age(tree, now),
    ]


PRINTERS: Final[Mapping[str, Printer]] = {
    "DeviceClass": Printer(columns=(NAME, AGE), cells=_named),
    "ResourceClaim": Printer(columns=(NAME, Column(name="State"), AGE), cells=_resource_claim),
    "ResourceClaimTemplate": Printer(columns=(NAME, AGE), cells=_named),
    "ResourceSlice": Printer(
        columns=(NAME, Column(name="Node"), Column(name="Driver"), Column(name="Pool"), AGE),
        cells=_resource_slice,
    ),
}
