"""RoleBinding and ClusterRoleBinding: the subjects to which a role is granted."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import checks, validation
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import items, text
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.declared import DeclaredRules, required
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import PATH_SEGMENT
from mockube.apiserver.kinds.common.validation import Create, Validation
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import UPSERTED
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_GROUP: Final = "rbac.authorization.k8s.io"


# --- defaults

_SUBJECT_GROUPS: Final = {"User": _GROUP, "Group": _GROUP}


def _default_subject(subject: Tree) -> None:
    group = _SUBJECT_GROUPS.get(subject["kind"])
    if group:
        subject.setdefault("apiGroup", group)


DEFAULTS: Final = defaults_table(
    "io.k8s.api.rbac.v1", {"RoleRef": {"apiGroup": _GROUP}, "Subject": _default_subject}
)
"""The defaults of structs that both kinds use."""


# --- validation


def _check_account_name(subject: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    return checks.optional("name", checks.report(names.check_dns1123_subdomain))(subject, path)


def _check_no_group(subject: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    return checks.optional("apiGroup", checks.one_of(""))(subject, path)


_OF_GROUP: Final = checks.field("apiGroup", checks.one_of(_GROUP), absent="")


def _subject(*, namespaced: bool) -> Check:
    account = checks.all_of(_check_account_name, _check_no_group)
    kinds = {
        "ServiceAccount": account if namespaced else checks.all_of(account, checks.require("namespace")),
        "User": _OF_GROUP,
        "Group": _OF_GROUP,
    }

    def check(subject: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
        yield from checks.require("name")(subject, path)
        check_kind = kinds.get(
            subject.get("kind", ""), checks.field("kind", checks.one_of(*kinds), absent="")
        )
        yield from check_kind(subject, path)

    return check


def _binding(*kinds: str, namespaced: bool) -> Create:
    role = checks.all_of(
        _OF_GROUP,
        checks.field("kind", checks.one_of(*kinds), absent=""),
        checks.require("name", checks.report(names.check_path_segment_name)),
    )
    return validation.from_root(
        checks.field("roleRef", role, absent={}),
        checks.field("subjects", checks.each_item(_subject(namespaced=namespaced))),
    )


_ROLE_BINDING: Final = _binding("Role", "ClusterRole", namespaced=True)
_CLUSTER_ROLE_BINDING: Final = _binding("ClusterRole", namespaced=False)


def _check_same_role(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    role = validation.get_struct(new, "roleRef")
    if role == validation.get_struct(old, "roleRef"):
        return ()
    return (errors.invalid(ROOT.child("roleRef"), internal("rbac.RoleRef", role), checks.IMMUTABLE),)


_DECLARED: Final = DeclaredRules(required("subjects[].name"), required("roleRef.name", create_only=True))


def _validation(create: Create, *, namespaced: bool) -> Validation:
    create_check = validation.as_created(create, PATH_SEGMENT, namespaced=namespaced)
    update = validation.in_order(create_check, validation.changed_metadata(PATH_SEGMENT), _check_same_role)
    return Validation(
        name=PATH_SEGMENT,
        repeated_checks=validation.NO_CHECKS,
        create=create,
        update=update,
        declared=_DECLARED,
    )


# --- columns


def _cells(binding: Tree, now: datetime) -> list[Any]:
    subjects = items(binding, "subjects")
    accounts = _of_kind(subjects, "ServiceAccount")
    return [
        meta.name(binding),
        f"{text(binding, 'roleRef', 'kind')}/{text(binding, 'roleRef', 'name')}",
        age(binding, now),
        ", ".join(text(user, "name") for user in _of_kind(subjects, "User")),
        ", ".join(text(group, "name") for group in _of_kind(subjects, "Group")),
        ", ".join(f"{text(account, 'namespace')}/{text(account, 'name')}" for account in accounts),
    ]


def _of_kind(subjects: Any, kind: str) -> list[Any]:
    return [subject for subject in subjects if meta.kind(subject) == kind]


_PRINTER: Final = Printer(
    columns=(
        NAME,
        Column(name="Role"),
        AGE_COLUMN,
        Column(name="Users", priority=1),
        Column(name="Groups", priority=1),
        Column(name="ServiceAccounts", priority=1),
    ),
    cells=_cells,
)


CLUSTER_ROLE_BINDING: Final = Kind(
    resource=Resource(
        group=_GROUP, version="v1", name="clusterrolebindings", kind="ClusterRoleBinding", namespaced=False
    ),
    strategy=UPSERTED,
    validation=_validation(_CLUSTER_ROLE_BINDING, namespaced=False),
    printer=_PRINTER,
)

ROLE_BINDING: Final = Kind(
    resource=Resource(group=_GROUP, version="v1", name="rolebindings", kind="RoleBinding"),
    strategy=UPSERTED,
    validation=_validation(_ROLE_BINDING, namespaced=True),
    printer=_PRINTER,
)
