"""Random changes of a body: a field removed, of another type, out of range, repeated, or added from the schema."""

import copy

from judges.differential.schemas import NUMBERS, QUANTITIES, TEXTS

OTHER_TYPES = (None, "x", "", 1, 2.0, 1.5, True, [], {}, [None], {"a": None}, "1")
KEPT = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace")}
"""Fields that are changed rarely, because such a request mostly fails early."""


def mutated(random, body, schemas, schema, count):
    """Return a copy with this many changes."""
    body = copy.deepcopy(body)
    for _ in range(count):
        found = [place for place in places(body) if place not in KEPT or random.random() < 0.05]
        if not found:
            break
        _change(random, body, random.choice(found), schemas, schema)
    return body


def places(value, path=()):
    """Yield the path of each field and each item."""
    if path:
        yield path
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, member in members:
        yield from places(member, (*path, key))


def _change(random, body, place, schemas, schema):
    parent = body
    for key in place[:-1]:
        parent, schema = parent[key], schemas.field(schema, key)
    key = place[-1]
    schema = schemas.field(schema, key)
    if random.random() < 0.15:
        del parent[key]
    else:
        parent[key] = _other_value(random, parent[key], schemas, schema)


def _other_value(random, old, schemas, schema):
    draw = random.random()
    if draw < 0.2:
        return copy.deepcopy(random.choice(OTHER_TYPES))
    if draw < 0.5:
        return schemas.value(random, schema, 1)
    match old:
        case dict():
            return old | _member(random, schemas, schema)
        case list():
            item = schemas.value(random, schemas.field(schema, 0), 1)
            return random.choice(([], old[::-1], old + copy.deepcopy(old[:1]), [*old, item]))
        case str():
            return random.choice((*TEXTS, *QUANTITIES))
    return random.choice(NUMBERS)


def _member(random, schemas, schema):
    """Add one more field: mostly one of the schema."""
    fields = schemas.fields(schema)
    if random.random() < 0.2:
        return {"unknown": copy.deepcopy(random.choice(OTHER_TYPES))}
    if fields:
        name = random.choice(sorted(fields))
        return {name: schemas.value(random, fields[name], 1)}
    return {random.choice(("a", "b.c/d", "", "A")): schemas.value(random, schemas.field(schema, "a"), 2)}
