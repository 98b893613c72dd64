"""Extreme objects that a schema allows: with every field, or with null and empty values wherever possible."""

from mockube.apimachinery.schema.model import Shape

ABSENT = object()

ODD = {
    Shape.STRING: "Odd Text!",
    Shape.INTEGER: -1,
    Shape.NUMBER: -0.5,
    Shape.BOOLEAN: True,
    Shape.QUANTITY: "-1500m",
    Shape.INT_OR_STRING: "-1%",
    Shape.TIME: "2026-01-01T00:00:00Z",
    Shape.MICRO_TIME: "2026-01-01T00:00:00.000000Z",
    Shape.BYTES: "AA==",
    Shape.ANY: {},
}
"""A well-formed value of each shape that few validation rules accept."""


def full_value(type_, scalars, *, nulls=False, inside=()):
    """Return a value with all fields and items of a type, once or twice each, with these scalars.

    `nulls`: lists and maps that Go never leaves out are null instead.
    """
    if type_.shape is Shape.STRUCT:
        if type_.name in inside:
            return {}
        inside = (*inside, type_.name)
        struct = {
            name: None
            if nulls and is_null(field)
            else full_value(field.type, scalars, nulls=nulls, inside=inside)
            for name, field in type_.fields.items()
        }
        return {name: value for name, value in struct.items() if value is not ABSENT}
    if type_.shape in (Shape.LIST, Shape.MAP):
        item = full_value(type_.items, scalars, nulls=nulls, inside=inside)
        if type_.shape is Shape.LIST:
            return [] if item is ABSENT else [item, item]
        return {} if item is ABSENT else {"Odd Key!": item}
    return scalars.get(type_.shape, ABSENT)


def is_null(field):
    return field.type.shape in (Shape.LIST, Shape.MAP) and not field.omit_empty
