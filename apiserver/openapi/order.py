"""The order of members in upstream's documents, so that the documents have upstream's bytes and hashes."""

from collections.abc import Iterable, Mapping
from typing import Final

from mockube.apimachinery.tree import Tree

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_OPERATION: Final = ("tags", "description", "operationId", "parameters", "requestBody", "responses")
"""The members of an operation of version 3, before its extensions."""
_POSITIONS: Final[Mapping[str, int]] = {
    keyword: position
    for position, keyword in enumerate(
        (
            *("id", "description", "type", "nullable", "format", "title", "default", "maximum"),
            *("exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern"),
            *("maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties"),
            *("minProperties", "required", "items", "allOf", "oneOf", "anyOf", "not", "properties"),
            *("additionalProperties", "externalDocs", "example", "$ref"),
        )
    )
}
"""The positions of the keywords of a schema."""
_RULE: Final = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")


def ordered_schema(schema: Tree) -> Tree:
    """Return the schema with known keywords first, and then others by their names."""
    return {key: schema[key] for key in sorted(schema, key=_keyword_order)}


def _keyword_order(keyword: str) -> tuple[int, str]:
    return _POSITIONS.get(keyword, len(_POSITIONS)), keyword


def ordered_operation(operation: Tree) -> Tree:
    """Return the operation without the members that are empty."""
    members = {name: operation[name] for name in _OPERATION if operation.get(name)}
    return members | {name: value for name, value in operation.items() if name not in _OPERATION}


def ordered_rules(rules: Iterable[Tree]) -> list[Tree]:
    """Return validation rules with their members in the order of version 3."""
    return [{name: rule[name] for name in _RULE if name in rule} for rule in rules]
