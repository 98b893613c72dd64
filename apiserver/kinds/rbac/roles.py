"""Role and ClusterRole: what is allowed, in a namespace or in the whole cluster."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.checks import Check, each, every, field, pointer, required
from mockube.apiserver.kinds.common.objectmeta import PATH_SEGMENT
from mockube.apiserver.kinds.common.objects import as_created, changed_metadata, created, in_order
from mockube.apiserver.kinds.common.selectors import check_selector
from mockube.apiserver.kinds.common.validation import NOTHING, Create, Validation
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy

_OF_RESOURCES: Final = every(
    required("apiGroups", detail="resource rules must supply at least one api group"),
    required("resources", detail="resource rules must supply at least one resource"),
)


def _rule(*, namespaced: bool) -> Check:
    def check(rule: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
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


def _validation(create: Create, *, namespaced: bool) -> Validation:
    update = in_order(as_created(create, PATH_SEGMENT, namespaced=namespaced), changed_metadata(PATH_SEGMENT))
    return Validation(name=PATH_SEGMENT, again=NOTHING, create=create, update=update)


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
    validation=_validation(_CLUSTER_ROLE, namespaced=False),
)

ROLE: Final = Kind(
    resource=Resource(group="rbac.authorization.k8s.io", version="v1", name="roles", kind="Role"),
    strategy=_STRATEGY,
    validation=_validation(_ROLE, namespaced=True),
)
