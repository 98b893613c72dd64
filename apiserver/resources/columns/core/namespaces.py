"""The columns of namespaces, and of what is set up in one before there are pods: quotas, accounts, configuration."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import amount, count, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _namespace(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "status", "phase"), ages.age(tree, now)]


def _config_map(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), count(tree, "data") + count(tree, "binaryData"), ages.age(tree, now)]


def _secret(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "type"), count(tree, "data"), ages.age(tree, now)]


def _service_account(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), ages.age(tree, now)]


def _resource_quota(tree: Tree, now: datetime) -> list[Any]:
    status = part(tree, "status")
    resources = sorted(part(status, "hard") or ())
    limits = [resource for resource in resources if resource.startswith("limits.")]
    requests = [resource for resource in resources if resource not in limits]
    return [
        meta.name(tree),
        ", ".join(_used(status, resource) for resource in requests),
        ", ".join(_used(status, resource) for resource in limits),
        ages.age(tree, now),
    ]


def _used(status: Any, resource: str) -> str:
    return f"{resource}: {amount(status, 'used', resource)}/{amount(status, 'hard', resource)}"


PRINTERS: Final[Mapping[str, Printer]] = {
    "Namespace": Printer(columns=(NAME, Column(name="Status"), AGE), cells=_namespace),
    "ConfigMap": Printer(columns=(NAME, Column(name="Data"), AGE), cells=_config_map),
    "Secret": Printer(columns=(NAME, Column(name="Type"), Column(name="Data"), AGE), cells=_secret),
    "ServiceAccount": Printer(columns=(NAME, AGE), cells=_service_account),
    "ResourceQuota": Printer(
        columns=(NAME, Column(name="Request"), Column(name="Limit"), AGE), cells=_resource_quota
    ),
}
