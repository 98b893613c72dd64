"""Objects are printed whichever of their fields are missing.

Objects are generated from the types of their kinds, with the field names and strings of the printers' source code;
printers do not read others.
"""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import Shape
from mockube.apiserver.kinds import built_in_kinds as registry
from mockube.apiserver.kinds import common
from mockube.apiserver.kinds.built_in_kinds import GROUPS, NEWEST
from tests.support.server.printed_columns import NOW, time_ago

SCHEMAS = builtin.load()
ROWS = [
    (row, kind)
    for group in GROUPS
    for row in group.resources
    if registry.printer_of_kind(row.group_kind) is not registry.DEFAULT
    and (kind := SCHEMAS.kind(row.api_version, row.kind))
]

FILES = {
    *(Path(sys.modules[kind.printer.cells.__module__].__file__) for kind in NEWEST.all if kind.printer),
    *Path(common.__file__).parent.glob("*.py"),
}
"""The modules that contain printers, and their shared modules."""

WORDS = sorted(
    {
        node.value
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
)

TEXTS = st.sampled_from(WORDS)
TIMES = st.sampled_from([time_ago(hours=1), time_ago(hours=-1)])
SCALARS = {
    Shape.STRING: TEXTS,
    Shape.INTEGER: st.integers(-1, 2**31 - 1),
    Shape.NUMBER: st.floats(0, 1),
    Shape.BOOLEAN: st.booleans(),
    Shape.QUANTITY: st.sampled_from(["0", "1500m", "1Gi"]),
    Shape.INT_OR_STRING: st.sampled_from([0, 1, "25%"]),
    Shape.TIME: TIMES,
    Shape.MICRO_TIME: TIMES,
    Shape.BYTES: st.sampled_from(["", "MQ=="]),
    Shape.ANY: st.just({}),
}


@cache
def values(kind):
    if kind.shape is Shape.STRUCT:
        fields = {name: field.type for name, field in kind.fields.items() if name in WORDS}
        return st.fixed_dictionaries(
            {}, optional={name: st.none() | values(of) for name, of in fields.items()}
        )
    if kind.shape is Shape.LIST:
        return st.lists(values(kind.items), max_size=4)
    if kind.shape is Shape.MAP:
        return st.dictionaries(TEXTS, values(kind.items), max_size=3)
    return SCALARS[kind.shape]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("row", "kind"), [pytest.param(*row, id=f"{row[0].api_version}/{row[0].name}") for row in ROWS]
)
@given(data=st.data())
def test_objects_with_missing_fields_are_printed(row, kind, data):
    printer = registry.printer_of_kind(row.group_kind)
    cells = printer.cells(data.draw(values(kind)), NOW)
    assert len(cells) == len(printer.cells({}, NOW))
    assert all(isinstance(cell, str | int) for cell in cells)
