"""Role and ClusterRole: permissions in a namespace, or in the whole cluster."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import checks, validation
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.declared import DeclaredRules, required
from mockube.apiserver.kinds.common.objectmeta import PATH_SEGMENT
from mockube.apiserver.kinds.common.selectors import check_selector, check_selector_leniently
from mockube.apiserver.kinds.common.validation import Create, Update, Validation
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy

_OF_RESOURCES: Final = checks.all_of(
    checks.require("apiGroups", detail="resource rules must supply at least one api group"),
    checks.require("resources", detail="resource rules must supply at least one resource"),
)


def _rule(*, namespaced: bool) -> Check:
    def check(rule: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
        yield from checks.require("verbs", detail="verbs must contain at least one value")(rule, path)
        urls, field_path = rule.get("nonResourceURLs"), path.child("nonResourceURLs")
        if not urls:
            yield from _OF_RESOURCES(rule, path)
            return
        if namespaced:
            yield errors.invalid(field_path, urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            problem = "rules cannot apply to both regular resources and non-resource URLs"
            yield errors.invalid(field_path, urls, problem)

    return check


def _aggregation(check: Check) -> Check:
    def check_used(selector: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
        yield from check(selector, path)
        if [*check_selector(selector, path)]:
            yield errors.invalid(path, None, "invalid label selector.")

    detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
    return checks.pointer(
        "aggregationRule", checks.require("clusterRoleSelectors", checks.each_item(check_used), detail=detail)
    )


_CLUSTER_RULES: Final = checks.field("rules", checks.each_item(_rule(namespaced=False)))
_ROLE: Final = validation.from_root(checks.field("rules", checks.each_item(_rule(namespaced=True))))
_CLUSTER_ROLE: Final = validation.from_root(_CLUSTER_RULES, _aggregation(check_selector))
_LENIENT_CLUSTER_ROLE: Final = validation.from_root(_CLUSTER_RULES, _aggregation(check_selector_leniently))


def _update_cluster_role(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Check an update. If an old selector is invalid, the new ones may have invalid label values."""
    selectors = validation.get_struct(old, "aggregationRule").get("clusterRoleSelectors") or ()
    old_is_invalid = any([*check_selector(selector, ROOT)] for selector in selectors)
    create = _LENIENT_CLUSTER_ROLE if old_is_invalid else _CLUSTER_ROLE
    yield from validation.as_created(create, PATH_SEGMENT, namespaced=False)(new, old)


_DECLARED: Final = DeclaredRules(required("rules[].verbs"))


def _validation(create: Create, update: Update) -> Validation:
    update = validation.in_order(update, validation.changed_metadata(PATH_SEGMENT))
    return Validation(
        name=PATH_SEGMENT,
        repeated_checks=validation.NO_CHECKS,
        create=create,
        update=update,
        declared=_DECLARED,
    )


_STRATEGY: Final = Strategy(create_on_update=True)

CLUSTER_ROLE: Final = Kind(
    resource=Resource(
        group="rbac.authorization.k8s.io",
        version="v1",
        name="clusterroles",
        kind="ClusterRole",
        namespaced=False,
    ),
    strategy=_STRATEGY,
    validation=_validation(_CLUSTER_ROLE, _update_cluster_role),
)

ROLE: Final = Kind(
    resource=Resource(group="rbac.authorization.k8s.io", version="v1", name="roles", kind="Role"),
    strategy=_STRATEGY,
    validation=_validation(_ROLE, validation.as_created(_ROLE, PATH_SEGMENT)),
)
