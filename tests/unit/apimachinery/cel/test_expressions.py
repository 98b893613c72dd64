"""CEL expressions have the errors, types, costs and values of cel-go with Kubernetes' libraries.

The results were recorded from k8s.io/apiserver 0.36.3: generated expressions, and every kind of syntax error.
"""

from pathlib import Path

import orjson
import pytest

from mockube.apimachinery.cel import schema_types, types
from mockube.apimachinery.cel.environment import Environment
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.cel.values import CelError, Duration, format_value, from_map_key
from mockube.apiserver.cel.cost_estimate import estimate_cost
from mockube.apiserver.cel.schema_values import converter

pytestmark = pytest.mark.thorough

HEAD, *ANSWERS = map(orjson.loads, (Path(__file__).parent / "answers.jsonl").read_bytes().splitlines())
PATHS = {
    "authorizer": types.struct("kubernetes.authorization.Authorizer"),
    "authorizer.requestResource": types.struct("kubernetes.authorization.ResourceCheck"),
}


@pytest.fixture(scope="module")
def typed():
    declared, structs = schema_types.name_structs(schema_types.declare(HEAD["schema"]), "selfType123")
    variables = {"self": declared.type, "oldSelf": declared.type, **PATHS}
    environment = Environment(variables, schema_types.DeclaredStructs(structs))
    convert = converter(HEAD["schema"])
    return environment, lambda path: schema_types.sizes_of(declared, path), convert(HEAD["self"])


@pytest.fixture(scope="module")
def untyped():
    return Environment({"self": types.DYN, **PATHS}), lambda _: None, HEAD["self"]


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer["expression"][:60] for answer in ANSWERS])
def test_expression_has_result_of_cel_go(answer, typed, untyped):
    environment, sizes, value = typed if answer.get("typed") else untyped
    assert outcome(environment, sizes, value, answer["expression"]) == {
        key: found for key, found in answer.items() if key not in ("typed", "expression")
    }


QUALIFIERS = {
    "[7, 8, 9][dyn(0.1)]": {"type": "int", "error": "unsupported index value 0.1 in list"},
    "{null: false}[null]": {"error": "invalid qualifier type: types.Null"},
    "{0: 1}[dyn(b'')]": {"error": "invalid qualifier type: types.Bytes"},
}


@pytest.mark.parametrize(("expression", "expected"), QUALIFIERS.items())
def test_only_messages_and_maps_support_field_selection(expression, expected, untyped):
    found = outcome(*untyped, expression)
    found.pop("estimate", None)
    assert found == expected


def outcome(environment, sizes, value, expression):
    try:
        compiled = environment.compile(expression)
    except Issues as issues:
        return {"issues": str(issues)}
    except ProgramError as error:
        return {"error": str(error)}
    found = {"type": str(compiled.type), "estimate": list(estimate_cost(compiled.expr, sizes))}
    try:
        result, cost = compiled.program.evaluate({"self": value, "oldSelf": value}, 1 << 62)
    except CelError as error:
        return found | {"error": str(error)}
    return found | {"value": formatted_value(result), "cost": cost}


def formatted_value(value):
    """Format a value as the program that recorded the results does."""
    if isinstance(value, str):
        text = orjson.dumps(value).decode()
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    if isinstance(value, bytes):
        return f"b[{' '.join(map(str, value))}]"
    if isinstance(value, Duration):
        return str(value.nanoseconds)
    if isinstance(value, list):
        return f"[{', '.join(map(formatted_value, value))}]"
    if isinstance(value, dict):
        entries = sorted(
            f"{formatted_value(from_map_key(key))}: {formatted_value(item)}" for key, item in value.items()
        )
        return "{" + ", ".join(entries) + "}"
    return format_value(value)
