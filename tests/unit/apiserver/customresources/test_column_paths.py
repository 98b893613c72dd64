"""Values of printer columns by JSON path: the cells are those of kube-apiserver 1.36.3."""

import pytest

from mockube.apiserver.customresources.columns import printer
from mockube.component_base.clock import SteppedClock

READY = {
    "type": "Ready",
    "status": "True",
    "count": 3,
    "flag": True,
    "a": {"b": "q"},
    "list": [7],
    "flt": 1.5,
}
PROGRESSING = {
    "type": "Progressing",
    "status": "False",
    "count": 1,
    "extra": 1,
    "flag": False,
    "a": {"b": "z"},
    "list": [8],
    "flt": 2.5,
}
TREE = {
    "metadata": {"name": "a"},
    "spec": {
        "replicas": 3,
        "names": ["a", "b", "c"],
        "a.b": {"c": 1},
        "map": {"x.y": 1, "x": {"y": 2}},
        "nul": None,
        "text": "hi",
        "nested": [["p", "q"], ["r"]],
    },
    "status": {"conditions": [READY, PROGRESSING]},
}
REFUSED = object()
"""The column is omitted from the table."""
PATHS = {
    ".spec.replicas": "3",
    ".spec['replicas']": "3",
    ".spec.a\\.b.c": "1",
    ".spec.names[0]": "a",
    ".spec.names[-1]": "c",
    ".spec.names[-2]": "b",
    ".spec.names[*]": "a",
    ".spec.names[0:2]": "a",
    ".spec.names[1:]": "b",
    ".spec.names[:2]": "a",
    ".spec.names[::2]": "a",
    ".spec.names[5]": None,
    ".spec.names[0,2]": "a",
    ".spec.names[2,0]": "c",
    ".spec['replicas','names']": "3",
    ".spec['missing','replicas']": "3",
    "..replicas": "3",
    "..count": "3",
    "..name": "a",
    "..conditions[0].type": "Ready",
    '.status.conditions[?(@.type=="Ready")].status': "True",
    ".status.conditions[?(@.type=='Ready')].status": "True",
    ".status.conditions[?(@.count > 2)].type": "Ready",
    ".status.conditions[?(@.count>2)].type": "Ready",
    '.status.conditions[?(@.missing=="x")].type': None,
    '.status.conditions[?(@.count=="3")].type': None,
    ".status.conditions[?(@.extra)].type": "Progressing",
    ".status.conditions[?(@.count!=3)].type": "Progressing",
    ".status.conditions[?(@.flag==true)].type": "Ready",
    ".status.conditions[?(@.count>=1)].type": "Ready",
    ".spec.names[ 0 ]": REFUSED,
    '.spec.names["a"]': REFUSED,
    ".spec[*]": None,
    ".spec.map[*]": None,
    ".spec.replicas[0]": None,
    ".spec.names[]": "a",
    ".spec.names[3:1]": None,
    ".spec.names[0:0]": None,
    ".spec.names[0:9]": None,
    ".spec.names[::0]": None,
    ".spec.names[-1:]": "c",
    ".spec.names[-5]": None,
    ".spec.nul": "<no value>",
    ".spec.nul.x": None,
    ".spec.map['x.y']": "2",
    ".spec.map['x\\.y']": "1",
    ".spec.replicas}": "3",
    ".spec.replicas}{.spec.names[0]": "3",
    ".spec range": None,
    ".spec.names.'x'": None,
    ".spec.names.3": None,
    ".spec.names[1,]": "b",
    ".spec.names[a]": REFUSED,
    "...a": '{"b":"q"}',
    ".status..count": "3",
    ".spec.names[0].x": None,
    ".status.conditions[?(@.a.b=='q')].type": "Ready",
    ".status.conditions[?(@.list[0]==7)].type": "Ready",
    ".status.conditions[?(@.type==@.type)].count": "3",
    ".status.conditions[?(@.flt==1.5)].type": "Ready",
    ".status.conditions[?(@.count==3.0)].type": None,
    ".status.conditions[?(@.type)]": '{"a":{"b":"q"},"count":3,"flag":true,"flt":1.5,"list":[7],"status":"True","type":"Ready"}',
    ".spec.text.*": "104",
    ".spec.names[?(x)]": "a",
    ".spec.names[?(@[3])]": "a",
    ".spec.names[?(@.x)]": None,
    ".status.conditions[?(@.list[3])].type": "Ready",
    ".status.conditions[?(@.extra x)].type": "Progressing",
    """.spec.names[?(b'[?(c"[?(@.d)]e")]f')]""": "a",
    "[?(" * 2000: REFUSED,
    "..*": REFUSED,
    ".spec.nested[*][0]": "p",
    ".spec.nested[0,1][0]": "p",
    ".spec.nested[0][1]": "q",
}


def printed_cell(path, kind="string"):
    made = printer([{"name": "x", "type": kind, "jsonPath": path}])
    _, *cells = made.cells(TREE, SteppedClock().now())
    return cells[0] if cells else REFUSED


@pytest.mark.parametrize("path", PATHS)
def test_column_shows_first_value_of_path(path):
    assert printed_cell(path) == PATHS[path]


def test_byte_string_is_no_number_column():
    assert (printed_cell(".spec.text.*", "integer"), printed_cell(".spec.replicas", "integer")) == (None, 3)
