"""The order in which upstream writes the members of documents: with it their bytes, and so their hashes, are upstream's."""

from collections.abc import Iterable, Mapping
from typing import Final

from mockube.apimachinery.tree import Tree

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_OPERATION: Final = ("tags", "description", "operationId", "parameters", "requestBody", "responses")
"""Of an operation of version 3, before its extensions."""
_PLACES: Final[Mapping[str, int]] = {
    keyword: place
    for place, keyword in enumerate(
        (
            *("id", "description", "type", "nullable", "format", "title", "default", "maximum"),
            *("exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern"),
            *("maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties"),
            *("minProperties", "required", "items", "allOf", "oneOf", "anyOf", "not", "properties"),
            *("additionalProperties", "externalDocs", "example", "$ref"),
        )
    )
}
"""Of the keywords of a schema."""
_RULE: Final = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")


def ordered_schema(schema: Tree) -> Tree:
    """Return the schema with known keywords first, and then others by their names."""
    return {key: schema[key] for key in sorted(schema, key=_keyword_order)}


def _keyword_order(keyword: str) -> tuple[int, str]:
    return _PLACES.get(keyword, len(_PLACES)), keyword


def ordered_operation(operation: Tree) -> Tree:
    """Return the operation without the members that are empty."""
    members = {name: operation[name] for name in _OPERATION if operation.get(name)}
    return members | {name: value for name, value in operation.items() if name not in _OPERATION}


def ordered_rules(rules: Iterable[Tree]) -> list[Tree]:
    """Return rules of validation as version 3 has them."""
    return [{name: rule[name] for name in _RULE if name in rule} for rule in rules]
