"""Changes of a body by chance: a field left out, of another type, out of its range, repeated, or added by its schema."""

import copy

from tests.differential.schemas import NUMBERS, QUANTITIES, TEXTS

OTHER_TYPES = (None, "x", "", 1, 2.0, 1.5, True, [], {}, [None], {"a": None}, "1")
KEPT = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace")}
"""What is changed seldom, as without it a request comes to nothing else."""


def mutated(chance, body, schemas, schema, count):
    """Return a copy with so many changes."""
    body = copy.deepcopy(body)
    for _ in range(count):
        found = [place for place in places(body) if place not in KEPT or chance.random() < 0.05]
        if not found:
            break
        _change(chance, body, chance.choice(found), schemas, schema)
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


def _change(chance, body, place, schemas, schema):
    parent = body
    for key in place[:-1]:
        parent, schema = parent[key], schemas.field(schema, key)
    key = place[-1]
    schema = schemas.field(schema, key)
    if chance.random() < 0.15:
        del parent[key]
    else:
        parent[key] = _changed(chance, parent[key], schemas, schema)


def _changed(chance, old, schemas, schema):
    draw = chance.random()
    if draw < 0.2:
        return copy.deepcopy(chance.choice(OTHER_TYPES))
    if draw < 0.5:
        return schemas.value(chance, schema, 1)
    match old:
        case dict():
            return old | _member(chance, schemas, schema)
        case list():
            item = schemas.value(chance, schemas.field(schema, 0), 1)
            return chance.choice(([], old[::-1], old + copy.deepcopy(old[:1]), [*old, item]))
        case str():
            return chance.choice((*TEXTS, *QUANTITIES))
    return chance.choice(NUMBERS)


def _member(chance, schemas, schema):
    """Return one more field: mostly one of the schema."""
    fields = schemas.fields(schema)
    if chance.random() < 0.2:
        return {"unknown": copy.deepcopy(chance.choice(OTHER_TYPES))}
    if fields:
        name = chance.choice(sorted(fields))
        return {name: schemas.value(chance, fields[name], 1)}
    return {chance.choice(("a", "b.c/d", "", "A")): schemas.value(chance, schemas.field(schema, "a"), 2)}
