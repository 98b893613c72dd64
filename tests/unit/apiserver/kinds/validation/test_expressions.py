"""CEL expressions in built-in kinds are compiled when the object is written."""

import pytest

from mockube.apimachinery.admission_expressions import (
    ANY,
    BOOL,
    JSON_PATCHES,
    OBJECT,
    TEXT_OR_NULL,
    BadExpression,
    Compiler,
    OptionalVariables,
)
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.resource.requests import check_expression


@pytest.mark.parametrize(
    ("text", "optional_variables"),
    [
        ("object.metadata.name == request.name && oldObject == null", OptionalVariables()),
        ("namespaceObject.metadata.labels['a'] == 'b'", OptionalVariables()),
        ("params.data.limit == '1'", OptionalVariables(params=True)),
        ("authorizer.group('apps').resource('deployments').check('get').allowed()", OptionalVariables()),
        ("authorizer.requestResource.check('delete').allowed()", OptionalVariables()),
    ],
)
def test_match_condition_must_be_boolean(text: str, optional_variables: OptionalVariables) -> None:
    assert Compiler().compile(text, BOOL, optional_variables).type in BOOL


@pytest.mark.parametrize(
    ("text", "returns", "optional_variables", "problem"),
    [
        ("1", BOOL, OptionalVariables(), "must evaluate to bool but got int"),
        ("1", TEXT_OR_NULL, OptionalVariables(), "must evaluate to one of [string null_type] but got int"),
        (
            "Object{}",
            JSON_PATCHES,
            OptionalVariables(patches=True),
            "must evaluate to list(JSONPatch) but got Object",
        ),
        (
            "bool('x')",
            TEXT_OR_NULL,
            OptionalVariables(),
            "must evaluate to one of [string null_type] but got bool",
        ),
        ("[]", OBJECT, OptionalVariables(patches=True), "must evaluate to Object but got list(dyn)"),
    ],
)
def test_other_expression_types_are_refused(
    text: str, returns: tuple, optional_variables: OptionalVariables, problem: str
) -> None:
    with pytest.raises(BadExpression, match="must evaluate to") as caught:
        Compiler().compile(text, returns, optional_variables)
    assert str(caught.value) == problem


def test_undeclared_references_are_refused() -> None:
    with pytest.raises(BadExpression, match="undeclared reference to 'params'"):
        Compiler().compile("params.x == 1", BOOL, OptionalVariables())
    with pytest.raises(BadExpression, match="undefined field 'foo'"):
        Compiler().compile("request.foo == 1", BOOL, OptionalVariables())


def test_variables_have_types_of_their_expressions() -> None:
    compiler = Compiler(has_variables=True)
    compiler.add_variable("count", "1 + 1", OptionalVariables())
    assert compiler.compile("variables.count == 2", BOOL, OptionalVariables()).type in BOOL
    with pytest.raises(BadExpression, match="no matching overload"):
        compiler.compile("variables.count == 'two'", BOOL, OptionalVariables())
    with pytest.raises(BadExpression, match="undefined field 'later'"):
        compiler.compile("variables.later", BOOL, OptionalVariables())


def test_variable_from_authorizer_has_dynamic_type() -> None:
    compiler = Compiler(has_variables=True)
    compiler.add_variable("authorizers", "[authorizer]", OptionalVariables())
    assert str(compiler.compile("variables.authorizers[0] + 1", ANY, OptionalVariables()).type) == "int"
    with pytest.raises(BadExpression, match=r"must evaluate to bool but got list\(dyn\)"):
        compiler.compile("variables.authorizers", BOOL, OptionalVariables())


@pytest.mark.parametrize(
    "text",
    [
        "device.driver == 'a' && device.allowMultipleAllocations",
        "device.attributes['a'].b",
        "device.attributes['a'].model.matches('^x')",
        "device.capacity['a'].memory.compareTo(quantity('1Gi')) >= 0",
        "cel.bind(a, device.attributes['x'], a.ready && a.fast)",
    ],
)
def test_device_selector_compiles(text: str) -> None:
    assert not [*check_expression(text, ROOT)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        (
            "device.foo",
            "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo\n | ......^",
        ),
        (
            "device.attributes.all(a, device.attributes.all(b, device.attributes[a].all(c, device.attributes[b].all(d, true))))",
            "too complex, exceeds cost limit",
        ),
    ],
)
def test_invalid_device_selector_is_refused(text: str, problem: str) -> None:
    assert [error.detail for error in check_expression(text, ROOT)] == [problem]
