"""The columns of apps."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import labels, meta
from apimachinery.groups import GroupKind
from apiserver.resources.columns import ages, selectors
from apiserver.resources.columns.containers import CONTAINERS, IMAGES, SELECTOR, names_and_images
from apiserver.resources.columns.parts import number, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _deployment(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        _ready(tree),
        number(tree, "status", "updatedReplicas"),
        number(tree, "status", "availableReplicas"),
        ages.age(tree, now),
        *names_and_images(part(tree, "spec", "template")),
        _deployment_selector(tree),
    ]


def _ready(tree: Tree) -> str:
    return f"{number(tree, 'status', 'readyReplicas')}/{number(tree, 'spec', 'replicas')}"


def _deployment_selector(tree: Tree) -> str:
    """Unlike everybody else's an empty selector is an empty text, and a wrong one invalid."""
    try:
        return str(labels.from_label_selector(part(tree, "spec", "selector")))
    except labels.SelectorError:
        return "<invalid>"


def _replica_set(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        number(tree, "spec", "replicas"),
        number(tree, "status", "replicas"),
        number(tree, "status", "readyReplicas"),
        ages.age(tree, now),
        *names_and_images(part(tree, "spec", "template")),
        selectors.of_selector(part(tree, "spec", "selector")),
    ]


def _stateful_set(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        _ready(tree),
        ages.age(tree, now),
        *names_and_images(part(tree, "spec", "template")),
    ]


def _daemon_set(tree: Tree, now: datetime) -> list[Any]:
    template = part(tree, "spec", "template")
    return [
        meta.name(tree),
        number(tree, "status", "desiredNumberScheduled"),
        number(tree, "status", "currentNumberScheduled"),
        number(tree, "status", "numberReady"),
        number(tree, "status", "updatedNumberScheduled"),
        number(tree, "status", "numberAvailable"),
        selectors.of_labels(part(template, "spec", "nodeSelector")),
        ages.age(tree, now),
        *names_and_images(template),
        selectors.of_selector(part(tree, "spec", "selector")),
    ]


def _controller_revision(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), _controller(tree), number(tree, "revision"), ages.age(tree, now)]


def _controller(tree: Tree) -> str:
    owner = meta.controller_of(tree)
    if owner is None:
        return "<none>"
    group, slash, _ = meta.api_version(owner).partition("/")
    kind = GroupKind(group if slash else "", meta.kind(owner))
    return f"{str(kind).lower()}/{text(owner, 'name')}"


PRINTERS: Final[Mapping[str, Printer]] = {
    "Deployment": Printer(
        columns=(
            NAME,
            Column(name="Ready"),
            Column(name="Up-to-date"),
            Column(name="Available"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        cells=_deployment,
    ),
    "ReplicaSet": Printer(
        columns=(
            NAME,
            Column(name="Desired", type="integer"),
            Column(name="Current", type="integer"),
            Column(name="Ready", type="integer"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        cells=_replica_set,
    ),
    "StatefulSet": Printer(
        columns=(NAME, Column(name="Ready"), AGE, CONTAINERS, IMAGES), cells=_stateful_set
    ),
    "DaemonSet": Printer(
        columns=(
            NAME,
            Column(name="Desired", type="integer"),
            Column(name="Current", type="integer"),
            Column(name="Ready", type="integer"),
            Column(name="Up-to-date", type="integer"),
            Column(name="Available", type="integer"),
            Column(name="Node Selector"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        cells=_daemon_set,
    ),
    "ControllerRevision": Printer(
        columns=(NAME, Column(name="Controller"), Column(name="Revision"), AGE), cells=_controller_revision
    ),
}
