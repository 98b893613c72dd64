"""Random values that the schemas of OpenAPI v3 describe."""

from mockube.apimachinery.tree import Tree

MAX_DEPTH = 4
TEXTS = (
    "",
    "a",
    "a-b",
    "A_b",
    "a.b/c",
    "1",
    "1.5",
    "-",
    "x" * 300,
    "ä",
    "true",
    "2026-01-02T03:04:05Z",
    "10.0.0.1",
)
QUANTITIES = ("1", "100m", "1Gi", "0.5", "1e3", "-1", "1.5Gi", "0", "01", "1x")
NUMBERS = (0, 1, -1, 2, 80, 65535, 65536, 2**31 - 1, 2**31, 2**53, -(2**63), 2**63, 2.0, 1e3, 1.5)


class Schemas:
    """The schemas of one group and version."""

    def __init__(self, document: Tree) -> None:
        self._components = document.get("components", {}).get("schemas", {})

    def of_kind(self, group: str, version: str, kind: str) -> Tree | None:
        for schema in self._components.values():
            for found in schema.get("x-kubernetes-group-version-kind", ()):
                if (found["group"], found["version"], found["kind"]) == (group, version, kind):
                    return schema
        return None

    def resolve(self, schema: Tree) -> Tree:
        """Follow references within this document."""
        while True:
            if "$ref" in schema:
                schema = self._components.get(schema["$ref"].rpartition("/")[2], {})
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            else:
                return schema

    def fields(self, schema: Tree) -> dict[str, Tree]:
        return self.resolve(schema).get("properties", {})

    def field(self, schema: Tree, key: object) -> Tree:
        """Return the schema of a member or an item."""
        schema = self.resolve(schema)
        if isinstance(key, int):
            return schema.get("items", {})
        found = schema.get("properties", {}).get(key)
        if found is None:
            found = schema.get("additionalProperties")
        return found if isinstance(found, dict) else {}

    def value(self, random, schema: Tree, depth: int = 0) -> object:
        """Return a value of a schema: mostly a well-formed one, sometimes an odd one."""
        schema = self.resolve(schema)
        if "enum" in schema and random.random() < 0.8:
            return random.choice(schema["enum"])
        if "oneOf" in schema:
            return self.value(random, random.choice(schema["oneOf"]), depth)
        match schema.get("type"):
            case "string":
                return self._string(random, schema.get("format"))
            case "integer":
                return random.choice(NUMBERS[:5] if random.random() < 0.7 else NUMBERS)
            case "number":
                return random.choice(NUMBERS)
            case "boolean":
                return random.random() < 0.5
            case "array":
                count = random.choice((0, 1, 1, 2)) if depth < MAX_DEPTH else 0
                return [self.value(random, schema.get("items", {}), depth + 1) for _ in range(count)]
        return self._object(random, schema, depth)

    def _string(self, random, form):
        if form == "date-time":
            return "2026-01-02T03:04:05Z"
        if form == "byte":
            return random.choice(["YQ==", "", "a"])
        return random.choice(TEXTS[1:3] if random.random() < 0.6 else (*TEXTS, *QUANTITIES))

    def _object(self, random, schema, depth):
        if "properties" not in schema:
            of = schema.get("additionalProperties")
            if not isinstance(of, dict) or depth >= MAX_DEPTH:
                return {}
            return {random.choice(("a", "b", "a/b", "cpu")): self.value(random, of, depth + 1)}
        needed = set(schema.get("required", ()))
        share = 0.4 if depth < 2 else 0.15
        return {
            name: self.value(random, field, depth + 1)
            for name, field in schema["properties"].items()
            if name in needed or (depth < MAX_DEPTH and random.random() < share)
        }
