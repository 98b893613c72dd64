"""Rules that webhooks and admission policies share: names, and the matching of requests."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.admission_expressions import BOOL, BadExpression, Compiler, OptionalVariables
from mockube.apimachinery.cel.language import FULL_LANGUAGE, Language
from mockube.apimachinery.cel.types import Type
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks, objectmeta
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.selectors import check_selector
from mockube.apiserver.kinds.common.validation import Create
from mockube.apiserver.kinds.common.warnings import Warnings, on_create_and_update

check_failure_policy: Final = checks.one_of("Fail", "Ignore")
check_match_policy: Final = checks.one_of("Equivalent", "Exact")

_ALL: Final = "*"


# --- resources that no webhook and no policy reviews

VIRTUAL_RESOURCES: Final = frozenset(
    {
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
    }
)
_VIRTUAL_GROUPS: Final = frozenset(resource.group for resource in VIRTUAL_RESOURCES)
VIRTUAL_EXCLUDED_SINCE: Final = "1.37"
"""The first minor in which webhooks do not review them. Policies never did."""


def virtual_resources_of(rule: ReadOnlyTree) -> Iterator[GroupResource]:
    """Return those of these resources that a rule of a webhook names, each once."""
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if _ALL in groups or _ALL in resources:
        return
    # Only the few groups that have such resources are combined with the names: a rule may have thousands of both.
    for group in dict.fromkeys(group for group in groups if group in _VIRTUAL_GROUPS):
        for name in dict.fromkeys(resources):
            if (resource := GroupResource(group, name)) in VIRTUAL_RESOURCES:
                yield resource


# --- names

NAMES: Final = objectmeta.with_any_finalizers(objectmeta.SUBDOMAIN)

_STATIC: Final = ".static.k8s.io"


RESERVED: Final = (
    f"names ending with {quote(_STATIC)} are reserved for static manifest-based configurations "
    "and cannot be managed via the API"
)


def reserved_name_check(create: Create) -> Create:
    """Return a check of a new object that refuses a reserved name after all other errors."""

    def check(tree: ReadOnlyTree) -> Iterator[FieldError]:
        yield from create(tree)
        name = meta.name(tree)
        if name.endswith(_STATIC):
            yield errors.invalid(objectmeta.METADATA.child("name"), name, RESERVED)

    return check


def warn_static_name(configuration: ReadOnlyTree) -> Iterator[str]:
    if meta.name(configuration).endswith(_STATIC):
        yield f"metadata.name: {RESERVED}"


NAME_WARNINGS: Final = Warnings(update=lambda new, _old: warn_static_name(new))
OLDER_NAME_WARNINGS: Final = on_create_and_update(warn_static_name)
"""The warnings of minors that do not refuse reserved names."""


# --- defaults

MATCH_DEFAULTS: Final = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
DEFAULTS: Final = defaults_table(
    "io.k8s.api.admissionregistration.v1",
    {
        "ServiceReference": {"port": 443},
        "RuleWithOperations": {"scope": "*"},
        "MatchResources": MATCH_DEFAULTS,
        "NamedRuleWithOperations": {"scope": "*"},
    },
)
"""The defaults of structs that several kinds use."""


# --- rules


def _check_wildcard_alone(others: str) -> Callable[[Sequence[str], Path], Iterable[FieldError]]:
    def check(values: Sequence[str], path: Path) -> Iterable[FieldError]:
        if _ALL not in values or len(values) == 1:
            return ()
        return (errors.invalid(path, values, f"if '*' is present, must not specify other {others}"),)

    return check


def _check_not_empty(value: str, path: Path) -> Iterable[FieldError]:
    return () if value else (errors.required(path),)


def _check_not_covered(resources: Sequence[str], path: Path) -> Iterator[FieldError]:
    """Refuse a resource that an earlier `resource/*` or `*/subresource` covers."""
    whole_resources, everywhere = set(), set()
    for index, name in enumerate(resources):
        resource, slash, subresource = name.partition("/")
        if not name:
            yield errors.required(path.index(index))
        if not slash:
            continue
        if resource in whole_resources:
            problem = f"if '{resource}/*' is present, must not specify {name}"
            yield errors.invalid(path.index(index), name, problem)
        if subresource in everywhere:
            problem = f"if '*/{subresource}' is present, must not specify {name}"
            yield errors.invalid(path.index(index), name, problem)
        if subresource == _ALL:
            whole_resources.add(resource)
        if resource == _ALL:
            everywhere.add(subresource)


def _check_resources(resources: Sequence[str], path: Path) -> Iterator[FieldError]:
    yield from _check_not_covered(resources, path)
    if len(resources) > 1 and "*/*" in resources:
        problem = "if '*/*' is present, must not specify other resources"
        yield errors.invalid(path, resources, problem)
    plain = [name for name in resources if name and "/" not in name]
    if _ALL in plain and plain[-1] != _ALL:
        problem = "if '*' is present, must not specify other resources without subresources"
        yield errors.invalid(path, resources, problem)


check_rule: Final = checks.all_of(
    checks.require(
        "operations",
        _check_wildcard_alone("operations"),
        checks.each_item(checks.one_of(_ALL, "CONNECT", "CREATE", "DELETE", "UPDATE")),
    ),
    checks.require("apiGroups", _check_wildcard_alone("API groups")),
    checks.require("apiVersions", _check_wildcard_alone("API versions"), checks.each_item(_check_not_empty)),
    checks.require("resources", _check_resources),
    checks.pointer("scope", checks.one_of(_ALL, "Cluster", "Namespaced")),
)


def _check_resource_names(values: Sequence[str] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, name in enumerate(values or ()):
        yield from checks.report(names.check_path_segment_name)(name, path.index(index))
        if name in seen:
            yield errors.duplicate(path.index(index), name)
        seen.add(name)


_NAMED_RULE: Final = checks.all_of(checks.field("resourceNames", _check_resource_names), check_rule)


def _require_present(name: str, check: Check) -> Check:
    """Require a field, which may be empty."""

    def check_field(tree: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        value = tree.get(name)
        return (errors.required(path.child(name)),) if value is None else check(value, path.child(name))

    return check_field


check_match_resources: Final = checks.all_of(
    _require_present("matchPolicy", check_match_policy),
    _require_present("namespaceSelector", check_selector),
    _require_present("objectSelector", check_selector),
    checks.field("resourceRules", checks.each_item(_NAMED_RULE)),
    checks.field("excludeResourceRules", checks.each_item(_NAMED_RULE)),
)


_MUTATING_OPERATIONS: Final = (_ALL, "CONNECT", "CREATE", "UPDATE")


def check_mutating_operations(resources: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Refuse operations that cannot be mutated. Upstream's errors have no index of the rule."""
    for rule in resources.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            field_path = path.child("resourceRules", "operations")
            yield from checks.one_of(*_MUTATING_OPERATIONS)(operation, field_path)


# --- conditions


def check_compiled(
    compiler: Compiler, text: str, path: Path, returns: Sequence[Type], optional_variables: OptionalVariables
) -> Iterable[FieldError]:
    """Return the error of an expression that does not compile."""
    try:
        compiler.compile(text, returns, optional_variables)
    except BadExpression as error:
        return (error.field_error(path, text),)
    return ()


def _check_condition(
    condition: ReadOnlyTree, path: Path, optional_variables: OptionalVariables, language: Language
) -> Iterator[FieldError]:
    text, field_path = condition.get("expression", "").strip(), path.child("expression")
    if not text:
        yield errors.required(field_path)
    else:
        yield from check_compiled(Compiler(language=language), text, field_path, BOOL, optional_variables)
    yield from _CONDITION_NAME(condition, path)


_CONDITION_NAME: Final = checks.require("name", objectmeta.check_label_name)
_MAX_CONDITIONS: Final = 64


def check_match_conditions(
    conditions: Sequence[ReadOnlyTree] | None,
    path: Path,
    *,
    has_params: bool = False,
    language: Language = FULL_LANGUAGE,
) -> Iterator[FieldError]:
    if len(conditions or ()) > _MAX_CONDITIONS:
        yield errors.too_many(path, len(conditions or ()), _MAX_CONDITIONS)
    seen = set()
    for index, condition in enumerate(conditions or ()):
        yield from _check_condition(
            condition, path.index(index), OptionalVariables(params=has_params), language
        )
        name = condition.get("name")
        if name and name in seen:
            yield errors.duplicate(path.index(index).child("name"), name)
        seen.add(name)
