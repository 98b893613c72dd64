"""The printer of each kind."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apimachinery.groups import GroupKind
from apimachinery.timestamps import format_time
from apiserver.resources.columns import (
    admissionregistration,
    apiregistration,
    apps,
    autoscaling,
    batch,
    certificates,
    coordination,
    discovery,
    events,
    flowcontrol,
    networking,
    node,
    policy,
    rbac,
    resource,
    scheduling,
    storage,
)
from apiserver.resources.columns.core import namespaces, nodes, pods, services, volumes
from apiserver.wire.table import NAME, Column, Printer, Tree

_GROUPS: Final[Mapping[str, Sequence[Mapping[str, Printer]]]] = {
    "": (
        namespaces.PRINTERS,
        nodes.PRINTERS,
        pods.PRINTERS,
        services.PRINTERS,
        volumes.PRINTERS,
        events.CORE_PRINTERS,
    ),
    "admissionregistration.k8s.io": (admissionregistration.PRINTERS,),
    "apiregistration.k8s.io": (apiregistration.PRINTERS,),
    "apps": (apps.PRINTERS,),
    "autoscaling": (autoscaling.PRINTERS,),
    "batch": (batch.PRINTERS,),
    "certificates.k8s.io": (certificates.PRINTERS,),
    "coordination.k8s.io": (coordination.PRINTERS,),
    "discovery.k8s.io": (discovery.PRINTERS,),
    "events.k8s.io": (events.PRINTERS,),
    "flowcontrol.apiserver.k8s.io": (flowcontrol.PRINTERS,),
    "networking.k8s.io": (networking.PRINTERS,),
    "node.k8s.io": (node.PRINTERS,),
    "policy": (policy.PRINTERS,),
    "rbac.authorization.k8s.io": (rbac.PRINTERS,),
    "resource.k8s.io": (resource.PRINTERS,),
    "scheduling.k8s.io": (scheduling.PRINTERS,),
    "storage.k8s.io": (storage.PRINTERS,),
}

PRINTERS: Final[Mapping[GroupKind, Printer]] = {
    GroupKind(group, kind): printer
    for group, parts in _GROUPS.items()
    for printers in parts
    for kind, printer in printers.items()
}


def _default(tree: Tree, _: datetime) -> list[Any]:
    created = meta.creation_timestamp(tree)
    return [meta.name(tree), format_time(created) if created else "0001-01-01T00:00:00Z"]


DEFAULT: Final = Printer(columns=(NAME, Column(name="Created At", type="date")), cells=_default)
"""For a kind that has no printer of its own."""


def printer_of_kind(group_kind: GroupKind) -> Printer:
    return PRINTERS.get(group_kind, DEFAULT)
