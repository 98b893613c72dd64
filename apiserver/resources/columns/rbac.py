"""The columns of rbac.authorization.k8s.io. Roles have upstream's default ones."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import items, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _binding(tree: Tree, now: datetime) -> list[Any]:
    subjects = items(tree, "subjects")
    accounts = _of_kind(subjects, "ServiceAccount")
    return [
        meta.name(tree),
        f"{text(tree, 'roleRef', 'kind')}/{text(tree, 'roleRef', 'name')}",
        ages.age(tree, now),
        ", ".join(text(user, "name") for user in _of_kind(subjects, "User")),
        ", ".join(text(group, "name") for group in _of_kind(subjects, "Group")),
        ", ".join(f"{text(account, 'namespace')}/{text(account, 'name')}" for account in accounts),
    ]


def _of_kind(subjects: Any, wanted: str) -> list[Any]:
    return [subject for subject in subjects if meta.kind(subject) == wanted]


_BINDING: Final = Printer(
    columns=(
        NAME,
        Column(name="Role"),
        AGE,
        Column(name="Users", priority=1),
        Column(name="Groups", priority=1),
        Column(name="ServiceAccounts", priority=1),
    ),
    cells=_binding,
)

PRINTERS: Final[Mapping[str, Printer]] = {"RoleBinding": _BINDING, "ClusterRoleBinding": _BINDING}
