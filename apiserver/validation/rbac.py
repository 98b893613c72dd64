"""Roles, and bindings of them to subjects, in a namespace or in the whole cluster."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.internal import internal
from apiserver.validation.kind import Create, Validation
from apiserver.validation.labels import check_selector
from apiserver.validation.objectmeta import PATH_SEGMENT
from apiserver.validation.objects import as_created, created, together, within
from apiserver.validation.rules import (
    Check,
    Tree,
    each,
    every,
    field,
    one_of,
    optional,
    pointer,
    required,
    valid,
)

_GROUP: Final = "rbac.authorization.k8s.io"


# --- roles

_OF_RESOURCES: Final = every(
    required("apiGroups", detail="resource rules must supply at least one api group"),
    required("resources", detail="resource rules must supply at least one resource"),
)


def _rule(*, namespaced: bool) -> Check:
    def check(rule: Tree, path: Path) -> Iterator[FieldError]:
        yield from required("verbs", detail="verbs must contain at least one value")(rule, path)
        urls, at = rule.get("nonResourceURLs"), path.child("nonResourceURLs")
        if not urls:
            yield from _OF_RESOURCES(rule, path)
            return
        if namespaced:
            yield errors.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            problem = "rules cannot apply to both regular resources and non-resource URLs"
            yield errors.invalid(at, urls, problem)

    return check


_AGGREGATION: Final = every(
    required(
        "clusterRoleSelectors",
        each(check_selector),
        detail="at least one clusterRoleSelector required if aggregationRule is non-nil",
    )
)

_ROLE: Final = created(field("rules", each(_rule(namespaced=True))))
_CLUSTER_ROLE: Final = created(
    field("rules", each(_rule(namespaced=False))), pointer("aggregationRule", _AGGREGATION)
)


# --- bindings


def _check_account_name(subject: Tree, path: Path) -> Iterable[FieldError]:
    return optional("name", valid(names.check_dns1123_subdomain))(subject, path)


def _check_no_group(subject: Tree, path: Path) -> Iterable[FieldError]:
    return optional("apiGroup", one_of(""))(subject, path)


_OF_GROUP: Final = field("apiGroup", one_of(_GROUP), absent="")


def _subject(*, namespaced: bool) -> Check:
    account = every(_check_account_name, _check_no_group)
    kinds = {
        "ServiceAccount": account if namespaced else every(account, required("namespace")),
        "User": _OF_GROUP,
        "Group": _OF_GROUP,
    }

    def check(subject: Tree, path: Path) -> Iterator[FieldError]:
        yield from required("name")(subject, path)
        of_kind = kinds.get(subject.get("kind", ""), field("kind", one_of(*kinds), absent=""))
        yield from of_kind(subject, path)

    return check


def _binding(*kinds: str, namespaced: bool) -> Create:
    role = every(
        _OF_GROUP,
        field("kind", one_of(*kinds), absent=""),
        required("name", valid(names.check_path_segment_name)),
    )
    return created(
        field("roleRef", role, absent={}), field("subjects", each(_subject(namespaced=namespaced)))
    )


_ROLE_BINDING: Final = _binding("Role", "ClusterRole", namespaced=True)
_CLUSTER_ROLE_BINDING: Final = _binding("ClusterRole", namespaced=False)


def _check_same_role(new: Tree, old: Tree) -> Iterable[FieldError]:
    role = within(new, "roleRef")
    if role == within(old, "roleRef"):
        return ()
    return (errors.invalid(ROOT.child("roleRef"), internal("rbac.RoleRef", role), "cannot change roleRef"),)


def _role(create: Create, *, namespaced: bool) -> Validation:
    update = as_created(create, PATH_SEGMENT, namespaced=namespaced)
    return Validation(name=PATH_SEGMENT, create=create, update=update)


def _role_binding(create: Create, *, namespaced: bool) -> Validation:
    update = as_created(create, PATH_SEGMENT, namespaced=namespaced)
    return Validation(name=PATH_SEGMENT, create=create, update=together(update, _check_same_role))


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind(_GROUP, "Role"): _role(_ROLE, namespaced=True),
    GroupKind(_GROUP, "ClusterRole"): _role(_CLUSTER_ROLE, namespaced=False),
    GroupKind(_GROUP, "RoleBinding"): _role_binding(_ROLE_BINDING, namespaced=True),
    GroupKind(_GROUP, "ClusterRoleBinding"): _role_binding(_CLUSTER_ROLE_BINDING, namespaced=False),
}
