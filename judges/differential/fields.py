"""Conversations that add one field of the schema at a time to an accepted object: at its creation, and to the stored object."""

import copy
from collections.abc import Generator, Iterator
from itertools import pairwise
from random import Random

from judges.differential.bodies import NAMED
from judges.differential.conversations import accepted_bodies
from judges.differential.schemas import Schemas
from mockube.apimachinery.tree import Tree

PER_CASE = 120
"""Fields that share a namespace and an object."""
SHARES = {"template": 0.08, "metadata": 0.3}
"""The share of the fields of a pod template, and of the metadata, that is tried for each kind."""
SKIPPED = {
    *(("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "managedFields")),
    ("metadata", "selfLink"),  # which responses to dry runs contain upstream
}
TEXTS = ("a", "", "A_b!", "a/b", "x" * 300)
NUMBERS = (1, 0, -1, 70000)

Place = tuple[str | int, ...]


def cases(
    seed: int, resources, schemas_of, kinds: tuple[str, ...] = ()
) -> Iterator[Generator[dict, dict, None]]:
    """Yield conversations for the named kinds, or for all; `resources` are keyed by their paths."""
    for path, bodies in sorted(accepted_bodies(tables=False).items()):
        if path not in resources or (kinds and path.rpartition("/")[2] not in kinds):
            continue
        resource, random = resources[path], Random(f"fields/{seed}/{path}")
        schemas = schemas_of(resource.group, resource.version)
        schema = schemas.of_kind(resource.group, resource.version, resource.kind) or {}
        found = [each for each in _fields(schemas, schema) if _is_tried(random, each[0])]
        random.shuffle(found)
        for start in range(0, len(found), PER_CASE):
            part = found[start : start + PER_CASE]
            yield _case(random, path, resource, bodies, (schemas, schema), part)


def _is_tried(random, place):
    share = SHARES.get("template" if "template" in place[:-1] else str(place[0]), 1)
    return place[:2] not in SKIPPED and random.random() < share


def _case(random, path, resource, bodies, schema, found):
    body = copy.deepcopy(random.choice(bodies))
    if resource.kind not in NAMED:
        body.setdefault("metadata", {})["name"] = "${ns}-x"
    answer = yield {"method": "POST", "path": path, "body": body}
    stored = answer["body"]
    if answer["status"] != 201 or "name" not in stored.get("metadata", {}):
        stored = None
    for place, value in found:
        if place[0] != "status":
            base = copy.deepcopy(random.choice(bodies))
            if resource.kind not in NAMED:
                base.setdefault("metadata", {})["name"] = "${ns}-y"
            changed = _with_field(*schema, base, place, value)
            yield {"method": "POST", "path": f"{path}?dryRun=All", "body": changed}
        if stored is None:
            continue
        here = f"{path}/{stored['metadata']['name']}"
        if place[0] == "status" and "status" in resource.subresources:
            here += "/status"
        elif random.random() < 0.5:
            continue
        changed = _with_field(*schema, stored, place, value)
        (changed["metadata"] or {}).pop("managedFields", None)
        yield {"method": "PUT", "path": f"{here}?dryRun=All", "body": changed}


def _with_field(schemas: Schemas, schema: Tree, body: Tree, place: Place, value: object) -> Tree:
    """Return a copy of an object with a field; its parents get the fields that they need."""
    body = copy.deepcopy(body)
    parent = body
    for key, following in pairwise(place):
        schema = schemas.field(schema, key)
        empty = _minimal_value(schemas, schema)
        if isinstance(key, int):
            if not parent:
                parent.append(empty)
        elif not isinstance(parent.get(key), list if isinstance(following, int) else dict):
            parent[key] = empty
        parent = parent[key]
    if isinstance(parent, list):
        parent[:1] = [copy.deepcopy(value)]
    else:
        parent[place[-1]] = copy.deepcopy(value)
    return body


def _fields(schemas: Schemas, schema: Tree, place: Place = (), above=()) -> Iterator[tuple[Place, object]]:
    """Yield each field below a schema with each value that is tried for it."""
    schema = schemas.resolve(schema)
    if sum(one is schema for one in above):
        return
    above = (*above, schema)
    for name, field in sorted(schemas.fields(schema).items()):
        inner = schemas.resolve(field)
        here = (*place, name)
        for value in _values(schemas, inner):
            yield here, value
        item = inner.get("items") or inner.get("additionalProperties")
        if isinstance(item, dict):
            here = (*here, 0 if "items" in inner else "a")
            if not schemas.fields(item):
                for value in _values(schemas, schemas.resolve(item)):
                    yield here, value
            inner = item
        yield from _fields(schemas, inner, here, above)


VALUES = {
    "date-time": ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789+02:00", None),
    "byte": ("YQ==", "", "a"),
    "string": TEXTS,
    "integer": NUMBERS,
    "number": NUMBERS,
    "boolean": (True, False),
    "oneOf": ("1", "50%", "-1", "1x", 1, -1, "", None),
}
"""Values that are tried, by format or type; `oneOf` is a quantity, or a number or a text."""


def _values(schemas, schema):
    if "enum" in schema:
        return (*schema["enum"], "x")
    kinds = (schema.get("format"), schema.get("type"), "oneOf" if "oneOf" in schema else None)
    if found := next((VALUES[kind] for kind in kinds if kind in VALUES), None):
        return found
    if schema.get("type") == "array":
        item = _minimal_value(schemas, schema.get("items", {}))
        return ([], [item], [item, item], [None])
    if isinstance(schema.get("additionalProperties"), dict):
        item = _minimal_value(schemas, schema["additionalProperties"])
        return ({}, {"a": item}, {"A b": item}, {"example.com/a": item}, {"b": None})
    return ({}, _minimal_value(schemas, schema), None)


def _minimal_value(schemas: Schemas, schema: Tree) -> object:
    """Return a value of a schema with the fields that are required."""
    schema = schemas.resolve(schema)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "string" if schema.get("format") in {"date-time", "byte"}:
            return {"date-time": "2026-01-02T03:04:05Z", "byte": "YQ=="}[schema["format"]]
        case "string":
            return "a"
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "array":
            return []
        case _ if "oneOf" in schema:
            return "1"
    fields = schemas.fields(schema)
    return {
        name: _minimal_value(schemas, fields[name]) for name in schema.get("required", ()) if name in fields
    }
