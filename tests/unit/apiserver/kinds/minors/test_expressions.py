"""Which CEL functions, macros and types each minor version accepts in its objects."""

import pytest

from mockube.apimachinery.admission_expressions import ANY, BadExpression, Compiler, OptionalVariables
from mockube.apimachinery.cel.language import FULL_LANGUAGE, Language, language_of
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds import kind_rules
from mockube.apiserver.kinds.served_kinds import kinds_of

GROUP = "admissionregistration.k8s.io"


def compile_error(text, minor):
    try:
        Compiler(language=language_of(minor)).compile(text, ANY, OptionalVariables())
    except BadExpression as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("text", "since", "found"),
    [
        ("'%s'.format(['a'])", "1.30", "undeclared reference to 'format' (in container '')"),
        ("strings.quote('a')", "1.30", "undeclared reference to 'strings' (in container '')"),
        ("sets.contains([1], [1])", "1.30", "undeclared reference to 'sets' (in container '')"),
        ("ip('10.0.0.1')", "1.31", "undeclared reference to 'ip' (in container '')"),
        ("isCIDR('10.0.0.0/8')", "1.31", "undeclared reference to 'isCIDR' (in container '')"),
        ("type('a') == net.IP", "1.31", "undeclared reference to 'net' (in container '')"),
        ("format.named('uuid')", "1.32", "undeclared reference to 'named' (in container '')"),
        ("format.uuid()", "1.32", "undeclared reference to 'uuid' (in container '')"),
        (
            "authorizer.group('').resource('pods').labelSelector('a=b')",
            "1.32",
            "undeclared reference to 'labelSelector' (in container '')",
        ),
        ("[1].first()", "1.33", "undeclared reference to 'first' (in container '')"),
        ("[optional.of(1)].unwrapOpt()", "1.33", "undeclared reference to 'unwrapOpt' (in container '')"),
        ("[1].all(i, x, x > i)", "1.33", "undeclared reference to 'i' (in container '')"),
        ("[1].transformMap(i, x, x)", "1.33", "undeclared reference to 'transformMap' (in container '')"),
        ("semver('1.0.0')", "1.34", "undeclared reference to 'semver' (in container '')"),
        ("[2, 1].sort()", "1.35", "undeclared reference to 'sort' (in container '')"),
        ("[2, 1].sortBy(x, x)", "1.35", "undeclared reference to 'sortBy' (in container '')"),
        ("lists.range(3)", "1.35", "undeclared reference to 'range' (in container '')"),
    ],
)
def test_cel_function_is_defined_from_its_minor_on(text, since, found):
    refusing = [minor for minor in minors.MINORS if compile_error(text, minor)]
    assert refusing == [minor for minor in minors.MINORS if minors.is_before(minor, since)]
    assert all(found in compile_error(text, minor) for minor in refusing)


@pytest.mark.parametrize(
    "text",
    [
        "[1].max() + [1].indexOf(1)",
        "' a'.trim() + 'a'.lowerAscii() + ['a'].join()",
        "url('https://a').getHost() + 'a'.find('a')",
        "quantity('1Gi').asInteger()",
        "[1].all(x, x > 0) && optional.of(1).optFlatMap(x, optional.of(x)).hasValue()",
        "authorizer.group('').resource('pods').check('get').allowed()",
    ],
)
def test_common_expression_compiles_in_every_minor(text):
    assert [compile_error(text, minor) for minor in minors.MINORS] == [""] * len(minors.MINORS)


def test_literals_are_checked_since_1_30():
    assert compile_error("duration('a') > duration('1s')", "1.29").startswith(
        "program instantiation failed: "
    )
    assert "invalid duration argument" in compile_error("duration('a') > duration('1s')", "1.30")


def test_newest_minor_has_whole_cel_library():
    assert language_of(minors.NEWEST) is FULL_LANGUAGE
    assert language_of("1.36") == language_of("1.35") == Language(limits_names=False)


CLIENT = {"service": {"namespace": "a", "name": "a", "port": 443}}
WEBHOOK = {
    "name": "a.b.c",
    "clientConfig": CLIENT,
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "matchConditions": [{"name": "a", "expression": "isIP('a')"}],
}
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
    "scope": "*",
}
MATCH = {
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "resourceRules": [RULE],
}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "isIP(self)"}]}
    },
}
OBJECTS = {
    (GROUP, "validatingwebhookconfigurations"): {"metadata": {"name": "a"}, "webhooks": [WEBHOOK]},
    (GROUP, "mutatingwebhookconfigurations"): {
        "metadata": {"name": "a"},
        "webhooks": [WEBHOOK | {"reinvocationPolicy": "Never"}],
    },
    (GROUP, "validatingadmissionpolicies"): {
        "metadata": {"name": "a"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": MATCH,
            "matchConditions": [{"name": "a", "expression": "isIP('a')"}],
            "variables": [{"name": "v", "expression": "isIP('a')"}],
            "validations": [{"expression": "isIP('a')"}],
        },
    },
    ("apiextensions.k8s.io", "customresourcedefinitions"): {
        "metadata": {"name": "as.b.c"},
        "spec": {
            "group": "b.c",
            "scope": "Namespaced",
            "names": {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"},
            "conversion": {"strategy": "None"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}},
                {
                    "name": "v2",
                    "served": True,
                    "storage": False,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                },
            ],
        },
        "status": {"storedVersions": ["v1"]},
    },
}


@pytest.mark.parametrize(("resource", "count"), [*zip(OBJECTS, (1, 1, 3, 1), strict=True)])
def test_objects_with_newer_expressions_are_refused_by_older_minors(resource, count):
    def error_details(minor):
        kinds = kinds_of(minor)
        row = next(one.resource for one in kinds.all if (one.resource.group, one.resource.name) == resource)
        created = kind_rules.check_create(row, OBJECTS[resource], kinds)
        updated = kind_rules.check_update(row, "", OBJECTS[resource], OBJECTS[resource], kinds)
        assert {error.detail for error in created} <= {error.detail for error in updated}
        return [error.detail for error in created]

    assert error_details("1.31") == error_details("1.36") == []
    found = error_details("1.30")
    assert len(found) == count
    assert all("undeclared reference to 'isIP' (in container '')" in detail for detail in found)
