"""FlowSchema: the requests of a flow, and the priority level at which they are served."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions, errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import number, part, text
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.validation import NO_CHECKS, Validation, as_created, get_struct
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .priority_level_configuration import EXEMPT, STRATEGY, update_status

_ALL: Final = "*"


# --- rules of requests


def _wildcard_alone(plural: str, inner: Check) -> Check:
    """Return the check that `*` is the only item, or that the items pass `inner`."""

    def check(values: Sequence[str], path: Path) -> Iterable[FieldError]:
        if _ALL not in values:
            return inner(values, path)
        if len(values) == 1:
            return ()
        return (errors.invalid(path, values, f"if '*' is present, must not specify other {plural}"),)

    return check


_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")


def _check_verbs(verbs: Sequence[str], path: Path) -> Iterable[FieldError]:
    return () if {*verbs} <= {*_VERBS} else (errors.not_supported(path, verbs, _VERBS),)


def _check_url(url: str, path: Path) -> Iterable[FieldError]:
    """Return only the first error, as upstream does."""
    stars = url.count("*")
    violations = {
        "must not be empty": not url,
        "must start with slash": not url.startswith("/"),
        "must not contain white-space": " " in url,
        "must not contain double slash": "//" in url,
        "wildcard can only do suffix matching": stars > 1 or (stars == 1 and not url.endswith("/*")),
    }
    problems = [problem for problem, is_violated in violations.items() if is_violated]
    return [errors.invalid(path, url, problem) for problem in problems[:1]]


def _check_namespace(name: str, path: Path) -> Iterator[FieldError]:
    for problem in names.check_dns1123_label(name):
        yield errors.invalid(
            path, name, f"each member of this list must be '*' or a DNS-1123 label; {problem}"
        )


def _check_namespaces(rule: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    namespaces, path = rule.get("namespaces") or (), path.child("namespaces")
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        return (errors.required(path, detail),)
    return _wildcard_alone("namespaces", checks.each_item(_check_namespace))(namespaces, path)


_RULE_VERBS: Final = checks.require(
    "verbs", _wildcard_alone("verbs", _check_verbs), detail="verbs must contain at least one value"
)
_RESOURCE_RULE: Final = checks.all_of(
    _RULE_VERBS,
    checks.require(
        "apiGroups",
        _wildcard_alone("api groups", checks.all_of()),
        detail="resource rules must supply at least one api group",
    ),
    checks.require(
        "resources",
        _wildcard_alone("resources", checks.all_of()),
        detail="resource rules must supply at least one resource",
    ),
    _check_namespaces,
)
_URL_RULE: Final = checks.all_of(
    _RULE_VERBS,
    checks.require(
        "nonResourceURLs",
        _wildcard_alone("non-resource URLs", checks.each_item(_check_url)),
        detail="nonResourceURLs must contain at least one value",
    ),
)


# --- subjects


def _check_account_name(name: str, path: Path) -> Iterable[FieldError]:
    return () if name == _ALL else checks.report(names.check_dns1123_subdomain)(name, path)


_ACCOUNT: Final = checks.all_of(
    checks.require("name", _check_account_name),
    checks.require(
        "namespace",
        checks.report(names.check_dns1123_label),
        detail="must specify namespace for service account",
    ),
)
_SUBJECTS: Final[Mapping[str, tuple[str, Check]]] = {
    "Group": ("group", checks.require("name")),
    "ServiceAccount": ("serviceAccount", _ACCOUNT),
    "User": ("user", checks.require("name")),
}
_ORDER: Final = ("ServiceAccount", "User", "Group")


def _check_subject(subject: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        yield errors.not_supported(path.child("kind"), kind, _SUBJECTS)
        return
    name, check = _SUBJECTS[kind]
    if subject.get(name) is None:
        yield errors.required(path.child(name), f"{name} is required when subject kind is '{kind}'")
    else:
        yield from check(subject[name], path.child(name))
    for other in _ORDER:
        field_name = _SUBJECTS[other][0]
        if other != kind and subject.get(field_name) is not None:
            detail = f"{field_name} is forbidden when subject kind is not '{other}'"
            yield errors.forbidden(path.child(field_name), detail)


# --- FlowSchema


def _check_required_rules(rule: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if rule.get("resourceRules") or rule.get("nonResourceRules"):
        return ()
    detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
    return (errors.required(path, detail),)


_RULE: Final = checks.all_of(
    checks.require(
        "subjects", checks.each_item(_check_subject), detail="subjects must contain at least one value"
    ),
    _check_required_rules,
    checks.field("resourceRules", checks.each_item(_RESOURCE_RULE)),
    checks.field("nonResourceRules", checks.each_item(_URL_RULE)),
)

_PRECEDENCE: Final = checks.all_of(
    checks.require_that(lambda value: value > 0, "must be a positive value"),
    checks.require_that(lambda value: value <= 10000, "must not be greater than 10000"),
)


def _check_distinguisher(method: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the type. Upstream's message contains the whole struct instead of the type."""
    if method.get("type") in ("ByNamespace", "ByUser"):
        return ()
    value = internal("flowcontrol.FlowDistinguisherMethod", method)
    return (errors.not_supported(path.child("type"), value, ("ByNamespace", "ByUser")),)


_LEVEL_NAME: Final = checks.require(
    "name", checks.report(names.check_dns1123_subdomain), detail="must reference a priority level"
)
_SCHEMA: Final = checks.all_of(
    checks.pointer("distinguisherMethod", _check_distinguisher),
    checks.field("priorityLevelConfiguration", _LEVEL_NAME, absent={}),
    checks.field("rules", checks.each_item(_RULE)),
)


def _create(tree: ReadOnlyTree) -> Iterator[FieldError]:
    spec, path = get_struct(tree, "spec"), ROOT.child("spec")
    precedence = spec.get("matchingPrecedence", 0)
    yield from _PRECEDENCE(precedence, path.child("matchingPrecedence"))
    if precedence == 1 and meta.name(tree) != EXEMPT:
        problem = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield errors.invalid(path.child("matchingPrecedence"), precedence, problem)
    yield from _SCHEMA(spec, path)


# --- columns


def _cells(schema: Tree, now: datetime) -> list[Any]:
    method = part(schema, "spec", "distinguisherMethod")
    return [
        meta.name(schema),
        text(schema, "spec", "priorityLevelConfiguration", "name"),
        number(schema, "spec", "matchingPrecedence"),
        "<none>" if method is None else text(method, "type"),
        age(schema, now),
        _is_dangling(schema),
    ]


def _precedence(schema: Tree) -> tuple[int, str]:
    """Return the sort key: requests are matched in this order."""
    return number(schema, "spec", "matchingPrecedence"), meta.name(schema)


def _is_dangling(schema: Tree) -> str:
    dangling = conditions.get(schema, "Dangling")
    return "?" if dangling is None else text(dangling, "status")


KIND: Final = Kind(
    resource=Resource(
        group="flowcontrol.apiserver.k8s.io",
        version="v1",
        name="flowschemas",
        kind="FlowSchema",
        namespaced=False,
        subresources=(STATUS,),
    ),
    strategy=STRATEGY,
    defaults=defaults_table("io.k8s.api.flowcontrol.v1", {"FlowSchemaSpec": {"matchingPrecedence": 1000}}),
    validation=Validation(
        repeated_checks=NO_CHECKS,
        silent=frozenset({"status"}),
        create=_create,
        update=as_created(_create, namespaced=False),
        subresources={"status": update_status},
    ),
    printer=Printer(
        columns=(
            NAME,
            Column(name="PriorityLevel"),
            Column(name="MatchingPrecedence"),
            Column(name="DistinguisherMethod"),
            AGE_COLUMN,
            Column(name="MissingPL"),
        ),
        cells=_cells,
        order=_precedence,
    ),
)
