"""Schemas of custom resources, mostly structural, and values that mostly fit them."""

from tests.support.hostile import hostile_bodies

NAMES = ("a", "b", "spec", "status", "replicas", "selector", "name", "type", "x", "é", "a.b", "")
PATTERNS = (
    "^a+$",
    "a|b",
    "[a-z]+",
    "^$",
    "(",
    "a{1000}",
    "\\d",
    "\\p{L}",
    "(?i)a",
    "(?=a)",
    "x*",
    "[",
    "a{2}{3}",
    "\\",
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
)
FORMATS = (
    "date-time", "date", "duration", "int32", "int64", "float", "double", "byte", "uuid", "ipv4", "ipv6", "cidr", "hostname", "email", "uri", "mac", "password", "bsonobjectid",
    "isbn", "creditcard", "ssn", "hexcolor", "rgbcolor", "x", "datetime", "uuid4", "k8s-short-name", "k8s-long-name", "quantity",
)  # fmt: skip
_SCALARS = ("string", "integer", "number", "boolean")
_TEXTS = (
    "",
    "a",
    "b",
    "aaa",
    "é",
    "2030-01-02T03:04:05Z",
    "2030-01-02",
    "1h",
    "10.0.0.1",
    "::1",
    "10.0.0.0/8",
    "AAE=",
    "a@b",
    "http://a",
    "1",
    "50%",
    "x" * 300,
)
_NUMBERS = (0, 1, -1, 2, 3, 0.5, -0.5, 100, 2**31, 2**53, 2**63 - 1, -(2**63), 1e300, 1.0, 2.0)
_RULES = (
    "self.a == self.b", "has(self.a)", "self.size() > 0", "true", "1", "self", "oldSelf == self", "(", "self.all(x, x > 0)", "self.matches('(')", "", "a.b.c", "self.x.y.z",
    "isQuantity(self)", "duration(self)", "self == oldSelf", "size(self) < 5",
)  # fmt: skip


def schema(chance, depth=0, *, top=False):
    """A structural schema."""
    kind = (
        "object"
        if top
        else chance.choice((*_SCALARS, "object", "object", "array", "any") if depth < 5 else _SCALARS)
    )
    made = {"type": kind}
    if kind == "object":
        _object(made, chance, depth, top=top)
    elif kind == "array":
        _array(made, chance, depth)
    elif kind == "any":
        made = chance.choice((
            {"x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-int-or-string": True},
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        ))  # fmt: skip
    else:
        _scalar(made, chance)
    return _also(made, chance, depth)


def _object(made, chance, depth, *, top):
    if not top and chance.random() < 0.25:
        made["additionalProperties"] = schema(chance, depth + 1)
    else:
        names = ("spec", "status") if top else NAMES
        made["properties"] = {
            chance.choice(names): schema(chance, depth + 1) for _ in range(chance.choice((1, 2, 3)))
        }
        if chance.random() < 0.3:
            made["required"] = [chance.choice((*made["properties"], "a"))]
    for name in ("minProperties", "maxProperties"):
        if chance.random() < 0.05:
            made[name] = chance.choice((0, 1, 2, 5))
    if chance.random() < 0.1:
        made["x-kubernetes-map-type"] = chance.choice(("atomic", "granular"))


def _array(made, chance, depth):
    made["items"] = schema(chance, depth + 1)
    for name in ("minItems", "maxItems"):
        if chance.random() < 0.1:
            made[name] = chance.choice((0, 1, 2, 5))
    if chance.random() < 0.5:
        made["x-kubernetes-list-type"] = chance.choice(("atomic", "set", "map"))
        if made["x-kubernetes-list-type"] == "map":
            made["x-kubernetes-list-map-keys"] = chance.choice((["name"], ["name", "type"], ["a"]))
            if chance.random() < 0.9:
                keys = {
                    key: {"type": chance.choice(("string", "string", "integer"))}
                    for key in made["x-kubernetes-list-map-keys"]
                }
                made["items"] = {
                    "type": "object",
                    "properties": {"b": schema(chance, depth + 2)} | keys,
                    "required": list(keys),
                }
    if chance.random() < 0.05:
        made["uniqueItems"] = chance.random() < 0.5


def _scalar(made, chance):
    if made["type"] == "string":
        choices = {
            "pattern": PATTERNS,
            "format": FORMATS,
            "minLength": (0, 1, 5),
            "maxLength": (0, 1, 5, 100),
            "enum": (["a", "b"], ["a"], ["a", "a"], [1]),
        }
    elif made["type"] == "boolean":
        choices = {"enum": ([True], [True, False])}
    else:
        choices = {
            "minimum": _NUMBERS, "maximum": _NUMBERS, "exclusiveMinimum": (True, False), "exclusiveMaximum": (True, False), "multipleOf": (1, 2, 0.1, 0.5, 3, 1e-9, 1e300),
            "format": ("int32", "int64", "float", "double"), "enum": ([1, 2], [1.0], [0.5, 2]),
        }  # fmt: skip
    for name, values in choices.items():
        if chance.random() < 0.2:
            made[name] = chance.choice(values)


def _also(made, chance, depth):
    """What a schema of any type may have."""
    if chance.random() < 0.1:
        made["nullable"] = True
    if chance.random() < 0.15:
        made["default"] = value(made, chance)
    if chance.random() < 0.06 and depth < 4:
        word = chance.choice(("allOf", "anyOf", "oneOf"))
        made[word] = [_limits(made, chance) for _ in range(chance.choice((1, 2, 3)))]
    if chance.random() < 0.04:
        made["not"] = _limits(made, chance)
    if chance.random() < 0.05:
        made["x-kubernetes-validations"] = [{"rule": chance.choice(_RULES), "message": "m"}]
    if chance.random() < 0.02:
        made = hostile_bodies.mutated(made, chance)
    return made


def _limits(made, chance):
    """A schema of nothing but bounds, as stands in allOf and its like."""
    words = {
        "required": ["a"],
        "minLength": 1,
        "pattern": "a",
        "minimum": 1,
        "maximum": 2,
        "enum": ["a", 1],
        "maxItems": 1,
        "minProperties": 1,
    }
    name = chance.choice(list(words))
    if made.get("properties") and chance.random() < 0.5:
        return {"properties": {chance.choice(list(made["properties"])): {name: words[name]}}}
    return {name: words[name]}


def value(of, chance, depth=0):
    """A value that fits a schema, but for what is left to chance."""
    if not isinstance(of, dict) or chance.random() < 0.06 or depth > 12:
        return hostile_bodies.odd_value(chance)
    if isinstance(of.get("enum"), list) and of["enum"] and chance.random() < 0.7:
        return chance.choice(of["enum"])
    kind = of.get("type")
    if kind == "object":
        return _members(of, chance, depth)
    if kind == "array":
        count = chance.choice((0, 1, 2, 3, 3, 40))
        count = count if depth < 4 else min(count, 2)
        return [value(of.get("items"), chance, depth + 1) for _ in range(count)]
    return chance.choice(_VALUES.get(kind, _ANYTHING) if isinstance(kind, str) else _ANYTHING)


_VALUES = {
    "string": _TEXTS,
    "integer": tuple(number for number in _NUMBERS if isinstance(number, int)),
    "number": _NUMBERS,
    "boolean": (True, False),
}
_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
_ANYTHING = (1, "1", "50%", _POD, {"a": [1]}, [], None)


def _members(of, chance, depth):
    properties = of.get("properties")
    made = {}
    if isinstance(properties, dict):
        made = {
            name: value(inner, chance, depth + 1)
            for name, inner in properties.items()
            if chance.random() < 0.8
        }
    if of.get("additionalProperties") or chance.random() < 0.1:
        inner = of.get("additionalProperties")
        made |= {chance.choice(NAMES): value(inner, chance, depth + 1) for _ in range(chance.choice((1, 2)))}
    return made
