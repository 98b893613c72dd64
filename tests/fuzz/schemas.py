"""Schemas of custom resources, mostly structural, and values that mostly match them."""

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


def schema(random, depth=0, *, top=False):
    """Return a structural schema."""
    kind = (
        "object"
        if top
        else random.choice((*_SCALARS, "object", "object", "array", "any") if depth < 5 else _SCALARS)
    )
    made = {"type": kind}
    if kind == "object":
        _object(made, random, depth, top=top)
    elif kind == "array":
        _array(made, random, depth)
    elif kind == "any":
        made = random.choice((
            {"x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-int-or-string": True},
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        ))  # fmt: skip
    else:
        _scalar(made, random)
    return _add_common_keywords(made, random, depth)


def _object(made, random, depth, *, top):
    if not top and random.random() < 0.25:
        made["additionalProperties"] = schema(random, depth + 1)
    else:
        names = ("spec", "status") if top else NAMES
        made["properties"] = {
            random.choice(names): schema(random, depth + 1) for _ in range(random.choice((1, 2, 3)))
        }
        if random.random() < 0.3:
            made["required"] = [random.choice((*made["properties"], "a"))]
    for name in ("minProperties", "maxProperties"):
        if random.random() < 0.05:
            made[name] = random.choice((0, 1, 2, 5))
    if random.random() < 0.1:
        made["x-kubernetes-map-type"] = random.choice(("atomic", "granular"))


def _array(made, random, depth):
    made["items"] = schema(random, depth + 1)
    for name in ("minItems", "maxItems"):
        if random.random() < 0.1:
            made[name] = random.choice((0, 1, 2, 5))
    if random.random() < 0.5:
        made["x-kubernetes-list-type"] = random.choice(("atomic", "set", "map"))
        if made["x-kubernetes-list-type"] == "map":
            made["x-kubernetes-list-map-keys"] = random.choice((["name"], ["name", "type"], ["a"]))
            if random.random() < 0.9:
                keys = {
                    key: {"type": random.choice(("string", "string", "integer"))}
                    for key in made["x-kubernetes-list-map-keys"]
                }
                made["items"] = {
                    "type": "object",
                    "properties": {"b": schema(random, depth + 2)} | keys,
                    "required": list(keys),
                }
    if random.random() < 0.05:
        made["uniqueItems"] = random.random() < 0.5


def _scalar(made, random):
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
        if random.random() < 0.2:
            made[name] = random.choice(values)


def _add_common_keywords(made, random, depth):
    """Return the keywords that a schema of any type may have."""
    if random.random() < 0.1:
        made["nullable"] = True
    if random.random() < 0.15:
        made["default"] = value(made, random)
    if random.random() < 0.06 and depth < 4:
        word = random.choice(("allOf", "anyOf", "oneOf"))
        made[word] = [_limits(made, random) for _ in range(random.choice((1, 2, 3)))]
    if random.random() < 0.04:
        made["not"] = _limits(made, random)
    if random.random() < 0.05:
        made["x-kubernetes-validations"] = [{"rule": random.choice(_RULES), "message": "m"}]
    if random.random() < 0.02:
        made = hostile_bodies.mutated(made, random)
    return made


def _limits(made, random):
    """Return a schema of bounds only, as in allOf and similar keywords."""
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
    name = random.choice(list(words))
    if made.get("properties") and random.random() < 0.5:
        return {"properties": {random.choice(list(made["properties"])): {name: words[name]}}}
    return {name: words[name]}


def value(of, random, depth=0):
    """Return a value that matches a schema, except for random deviations."""
    if not isinstance(of, dict) or random.random() < 0.06 or depth > 12:
        return hostile_bodies.odd_value(random)
    if isinstance(of.get("enum"), list) and of["enum"] and random.random() < 0.7:
        return random.choice(of["enum"])
    kind = of.get("type")
    if kind == "object":
        return _members(of, random, depth)
    if kind == "array":
        count = random.choice((0, 1, 2, 3, 3, 40))
        count = count if depth < 4 else min(count, 2)
        return [value(of.get("items"), random, depth + 1) for _ in range(count)]
    return random.choice(_VALUES.get(kind, _ANYTHING) if isinstance(kind, str) else _ANYTHING)


_VALUES = {
    "string": _TEXTS,
    "integer": tuple(number for number in _NUMBERS if isinstance(number, int)),
    "number": _NUMBERS,
    "boolean": (True, False),
}
_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
_ANYTHING = (1, "1", "50%", _POD, {"a": [1]}, [], None)


def _members(of, random, depth):
    properties = of.get("properties")
    made = {}
    if isinstance(properties, dict):
        made = {
            name: value(inner, random, depth + 1)
            for name, inner in properties.items()
            if random.random() < 0.8
        }
    if of.get("additionalProperties") or random.random() < 0.1:
        inner = of.get("additionalProperties")
        made |= {random.choice(NAMES): value(inner, random, depth + 1) for _ in range(random.choice((1, 2)))}
    return made
