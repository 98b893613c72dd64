import pytest

from mockube.apimachinery import errors
from mockube.apimachinery.errors import OMITTED
from mockube.apimachinery.paths import ROOT

X = ROOT.child("spec", "x")


@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        pytest.param(errors.required(X), "FieldValueRequired", "spec.x: Required value", id="required"),
        pytest.param(
            errors.required(X, "must have a name"),
            "FieldValueRequired",
            "spec.x: Required value: must have a name",
            id="required, with detail",
        ),
        pytest.param(
            errors.forbidden(X, "not allowed on this type"),
            "FieldValueForbidden",
            "spec.x: Forbidden: not allowed on this type",
            id="forbidden",
        ),
        pytest.param(
            errors.invalid(X, 'a"b', "is wrong"),
            "FieldValueInvalid",
            'spec.x: Invalid value: "a\\"b": is wrong',
            id="invalid string",
        ),
        pytest.param(
            errors.invalid(X, -1, "is wrong"),
            "FieldValueInvalid",
            "spec.x: Invalid value: -1: is wrong",
            id="invalid number",
        ),
        pytest.param(
            errors.invalid(X, 1e6, "is wrong"),
            "FieldValueInvalid",
            "spec.x: Invalid value: 1e+06: is wrong",
            id="invalid float",
        ),
        pytest.param(
            errors.invalid(X, value=True, detail="is wrong"),
            "FieldValueInvalid",
            "spec.x: Invalid value: true: is wrong",
            id="invalid boolean",
        ),
        pytest.param(
            errors.invalid(ROOT, None, "is wrong"),
            "FieldValueInvalid",
            "<nil>: Invalid value: null: is wrong",
            id="null value without a path",
        ),
        pytest.param(
            errors.invalid(X, {"Path": "<a>", "Verbs": None}, "is wrong"),
            "FieldValueInvalid",
            'spec.x: Invalid value: {"Path":"\\u003ca\\u003e","Verbs":null}: is wrong',
            id="invalid object",
        ),
        pytest.param(
            errors.invalid(X, [70000, 2], "must be ordered"),
            "FieldValueInvalid",
            "spec.x: Invalid value: [70000,2]: must be ordered",
            id="invalid list",
        ),
        pytest.param(
            errors.invalid(X, OMITTED, "min must not exceed max"),
            "FieldValueInvalid",
            "spec.x: Invalid value: min must not exceed max",
            id="invalid, value not shown",
        ),
        pytest.param(
            errors.type_invalid(X, "string", "must be an integer"),
            "FieldValueTypeInvalid",
            'spec.x: Invalid value: "string": must be an integer',
            id="type",
        ),
        pytest.param(
            errors.duplicate(X, {"k": "a"}),
            "FieldValueDuplicate",
            'spec.x: Duplicate value: {"k":"a"}',
            id="duplicate",
        ),
        pytest.param(
            errors.not_found(X, "cfg"), "FieldValueNotFound", 'spec.x: Not found: "cfg"', id="not found"
        ),
        pytest.param(
            errors.not_supported(X, "Bogus", ["Equal", "Exists"]),
            "FieldValueNotSupported",
            'spec.x: Unsupported value: "Bogus": supported values: "Equal", "Exists"',
            id="not supported",
        ),
        pytest.param(
            errors.not_supported(X, None, []),
            "FieldValueNotSupported",
            "spec.x: Unsupported value: null",
            id="unsupported value without alternatives",
        ),
        pytest.param(
            errors.too_long(X, 128),
            "FieldValueTooLong",
            "spec.x: Too long: may not be more than 128 bytes",
            id="too long",
        ),
        pytest.param(
            errors.too_long(X, 1, "character"),
            "FieldValueTooLong",
            "spec.x: Too long: may not be more than 1 character",
            id="too long in characters",
        ),
        pytest.param(
            errors.too_many(X, 3, 1),
            "FieldValueTooMany",
            "spec.x: Too many: 3: must have at most 1 item",
            id="too many",
        ),
        pytest.param(
            errors.internal(X, "broken"), "InternalError", "spec.x: Internal error: broken", id="internal"
        ),
    ],
)
def test_field_error_text(error, reason, text):
    assert str(error) == text
    assert error.body() == text.removeprefix(f"{error.field}: ")
    assert error.type.reason == reason


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param(["a"], "a", id="one"),
        pytest.param(["a", "b"], "[a, b]", id="several"),
        pytest.param(["a", "a"], "a", id="duplicate errors"),
        pytest.param(["b", "a", "b"], "[b, a]", id="different errors in order"),
    ],
)
def test_errors_are_aggregated(found, text):
    assert errors.aggregate(found) == text
