"""Objects as odd as a schema lets them be: with everything in them, or with nothing where there could be something."""

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
"""A value of each shape that few rules take."""


def everything(type_, scalars, *, nulls=False, inside=()):
    """All that there can be of a type, once or twice each, and of scalars what is given.

    `nulls`: lists and maps that Go never leaves out are null instead.
    """
    if type_.shape is Shape.STRUCT:
        if type_.name in inside:
            return {}
        inside = (*inside, type_.name)
        made = {
            name: None
            if nulls and is_null(field)
            else everything(field.type, scalars, nulls=nulls, inside=inside)
            for name, field in type_.fields.items()
        }
        return {name: value for name, value in made.items() if value is not ABSENT}
    if type_.shape in (Shape.LIST, Shape.MAP):
        item = everything(type_.items, scalars, nulls=nulls, inside=inside)
        if type_.shape is Shape.LIST:
            return [] if item is ABSENT else [item, item]
        return {} if item is ABSENT else {"Odd Key!": item}
    return scalars.get(type_.shape, ABSENT)


def is_null(field):
    return field.type.shape in (Shape.LIST, Shape.MAP) and not field.omit_empty
