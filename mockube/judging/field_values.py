"""Other valid values for the fields of a custom resource, made of the schema of its definition. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

Path = tuple[str, ...]
NO_VALUE: Final = object()
_MAX_DEPTH: Final = 6
_LONGEST_UNIT: Final = 2
_FORMATS: Final[Mapping[str, str]] = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "duration": "90s",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "hostname": "example.com",
    "email": "user@example.com",
    "uuid": "6f1c6f5e-7b1e-4a39-9d38-0d8ea8f1a5c3",
    "byte": "dmFsdWU=",
}


class FieldUpdate(Struct, frozen=True, kw_only=True):
    """A field of the spec, its value in the sample, and another one."""

    path: Path
    before: Any
    """NO_VALUE if the sample does not have the field."""
    after: Any

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def patch(self) -> ReadOnlyTree:
        """Return a merge patch that makes the change."""
        value = self.after
        for name in reversed(self.path):
            value = {name: value}
        patch: ReadOnlyTree = value
        return patch


def schema_of(definition: ReadOnlyTree, version: str) -> ReadOnlyTree:
    """Return the schema of the spec in a version of a definition; an empty one if there is none."""
    versions: Sequence[ReadOnlyTree] = definition["spec"].get("versions") or ()
    found = next((each for each in versions if each.get("name") == version), {})
    schema: Any = (found.get("schema") or {}).get("openAPIV3Schema") or {}
    spec: ReadOnlyTree = (schema.get("properties") or {}).get("spec") or {}
    return spec


def field_changes(schema: ReadOnlyTree, spec: ReadOnlyTree) -> Sequence[FieldUpdate]:
    """Return a change of each field: first those that the sample has, then the others, those near the top first."""
    found = [*_changes(schema, spec, ("spec",))]
    return sorted(found, key=lambda each: (each.before is NO_VALUE, len(each.path), each.path))


def _changes(schema: ReadOnlyTree, value: Any, path: Path) -> Iterator[FieldUpdate]:
    properties: Mapping[str, ReadOnlyTree] = schema.get("properties") or {}
    if properties and len(path) <= _MAX_DEPTH:
        own = value if isinstance(value, Mapping) else {}
        if value is NO_VALUE and schema.get("required"):
            yield from _change(schema, value, path)  # its fields cannot be set one by one
            return
        for name in sorted(properties):
            yield from _changes(properties[name], own.get(name, NO_VALUE), (*path, name))
    elif len(path) > 1:
        yield from _change(schema, value, path)


def _change(schema: ReadOnlyTree, value: Any, path: Path) -> Iterator[FieldUpdate]:
    after = other_value(schema, value)
    if after is not NO_VALUE and after != value:
        yield FieldUpdate(path=path, before=value, after=after)


def other_value(schema: ReadOnlyTree, value: Any) -> Any:
    """Return another value that the schema allows; NO_VALUE if none can be made of it alone."""
    choices = [each for each in schema.get("enum") or () if each not in (value, None)]
    if schema.get("enum"):
        return choices[0] if choices else NO_VALUE
    if value is NO_VALUE and "default" in schema:
        return other_value(schema, schema["default"])
    if schema.get("x-kubernetes-int-or-string"):
        return value + 1 if isinstance(value, int) else 1
    make = _MAKERS.get(str(schema.get("type", "")))
    return NO_VALUE if make is None else make(schema, value)


def _other_bool(_: ReadOnlyTree, value: Any) -> Any:
    return not value if isinstance(value, bool) else True


def _other_number(schema: ReadOnlyTree, value: Any) -> Any:
    least, most = schema.get("minimum"), schema.get("maximum")
    step = schema.get("multipleOf") or 1
    base = value if isinstance(value, (int, float)) else (least if least is not None else 0)
    candidates = (base + step, base - step) if isinstance(value, (int, float)) else (base + step, base)
    for candidate in candidates:
        if (least is None or candidate >= least) and (most is None or candidate <= most):
            return candidate
    return NO_VALUE


def _other_text(schema: ReadOnlyTree, value: Any) -> Any:
    text_format = str(schema.get("format", ""))
    if text_format in _FORMATS:
        return _FORMATS[text_format]
    if schema.get("pattern"):
        return (
            _larger_amount(str(value)) or _like(str(value)) if isinstance(value, str) and value else NO_VALUE
        )
    base = value if isinstance(value, str) else ""
    if larger := _larger_amount(base):
        return larger
    longer = f"{base}x" if base else "x" * max(1, int(schema.get("minLength") or 1))
    max_length = schema.get("maxLength")
    return longer if max_length is None or len(longer) <= max_length else base[:-1] or NO_VALUE


def _larger_amount(text: str) -> str:
    """Return a quantity or a span, such as 1Gi or 30s, with a larger number; "" for another text."""
    unit = text.lstrip("0123456789")
    digits = text[: len(text) - len(unit)]
    is_amount = digits and len(unit) <= _LONGEST_UNIT and (not unit or unit.isalpha())
    return f"{int(digits) + 1}{unit}" if is_amount else ""


def _like(text: str) -> Any:
    """Return a text of the same form: its last digit or letter is another one."""
    for index in range(len(text) - 1, -1, -1):
        character = text[index]
        if character.isdigit() or (character.isascii() and character.isalpha()):
            other = {"9": "8", "z": "y", "Z": "Y"}.get(character, chr(ord(character) + 1))
            return f"{text[:index]}{other}{text[index + 1 :]}"
    return NO_VALUE


def _other_list(schema: ReadOnlyTree, value: Any) -> Any:
    items = schema.get("items") or {}
    most = schema.get("maxItems")
    if isinstance(value, list) and value:
        if len(value) > int(schema.get("minItems") or 0) and len(value) > 1:
            return value[:-1]
        changed = other_value(items, value[-1])
        return NO_VALUE if changed is NO_VALUE else [*value[:-1], changed]
    item = other_value(items, NO_VALUE)
    return NO_VALUE if item is NO_VALUE or most == 0 else [item] * max(1, int(schema.get("minItems") or 1))


def _other_object(schema: ReadOnlyTree, value: Any) -> Any:
    own = dict(value) if isinstance(value, Mapping) else {}
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) and additional:
        item = other_value(additional, NO_VALUE)
        return NO_VALUE if item is NO_VALUE else {**own, "mockube-test": item}
    properties: Mapping[str, ReadOnlyTree] = schema.get("properties") or {}
    for name in sorted(properties, key=lambda each: each not in (schema.get("required") or ())):
        required = name in (schema.get("required") or ())
        if required or not own:
            item = other_value(properties[name], own.get(name, NO_VALUE))
            if item is NO_VALUE:
                return NO_VALUE
            own[name] = item
    return own or NO_VALUE


_MAKERS: Final = {
    "boolean": _other_bool,
    "integer": _other_number,
    "number": _other_number,
    "string": _other_text,
    "array": _other_list,
    "object": _other_object,
}
