"""ServiceAccount."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource, Subresource
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.validation import check_name_only
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Printer

_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"


_NOT_MOUNTABLE: Final = (
    f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to "
    "mounted secrets"
)


def _warn_create(account: ReadOnlyTree) -> Iterator[str]:
    if _MOUNTABLE in meta.annotations(account):
        yield _NOT_MOUNTABLE


def _warn_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[str]:
    if _MOUNTABLE not in meta.annotations(old):
        yield from _warn_create(new)


def _refer_to_secrets_by_name(account: Tree, _request: StrategyContext) -> None:
    if secrets := account.get("secrets"):
        account["secrets"] = [{"name": secret["name"]} if "name" in secret else {} for secret in secrets]


def _prepare_update(new: Tree, _old: Tree, request: StrategyContext) -> None:
    _refer_to_secrets_by_name(new, request)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), ages.age(tree, now)]


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="serviceaccounts",
        kind="ServiceAccount",
        short_names=("sa",),
        subresources=(
            Subresource(
                name="token",
                kind="TokenRequest",
                verbs=("create",),
                group_version=("authentication.k8s.io", "v1"),
            ),
        ),
    ),
    strategy=Strategy(
        prepare_create=_refer_to_secrets_by_name,
        prepare_update={MAIN: _prepare_update},
        returns_deleted=True,
    ),
    validation=check_name_only(),
    warnings=Warnings(create=_warn_create, update=_warn_update),
    printer=Printer(columns=(NAME, AGE_COLUMN), cells=_cells),
)
