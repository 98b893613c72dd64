"""Errors of duplicate items, and validation of many items in linear time."""

import sys
from collections import Counter

import pytest

from mockube.apimachinery import pem
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.common.field_references import check_field_of_volume
from mockube.apiserver.kinds.core.pod.context import STRICT
from mockube.apiserver.kinds.core.pod.scheduling import check_spread_constraints
from mockube.apiserver.kinds.core.volumes.legacy import _is_qualified_name
from mockube.apiserver.kinds.node import runtime_class
from tests.support.hostile.doubling import check_linear

PATH = ROOT.child("x")


def constraint(key, action="DoNotSchedule"):
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": {}}


def test_duplicate_constraint_is_reported():
    found = check_spread_constraints(
        [
            constraint("a"),
            constraint("b"),
            constraint("a"),
            constraint("a", "ScheduleAnyway"),
            constraint("a"),
        ],
        PATH,
        STRICT,
    )
    assert [str(error) for error in found] == [
        f'x[{index}].{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{a, DoNotSchedule}}"'
        for index in (0, 2)
    ]


@pytest.mark.timed
def test_many_constraints_take_linear_time():
    check_linear(
        lambda size: [constraint(f"k{number}") for number in range(size)],
        lambda constraints: [*check_spread_constraints(constraints, PATH, STRICT)],
        500,
    )


class Toleration(dict):
    """A toleration whose comparisons with others are calls."""

    __hash__ = None

    def __eq__(self, other):
        return super().__eq__(other)


def errors_and_calls(count):
    """Validate a runtime class whose last toleration is the first one once more, and count the calls of functions."""
    tolerations = [Toleration(key=f"k{number}", operator="Exists") for number in range(count)]
    tree = {
        "metadata": {"name": "a"},
        "handler": "h",
        "scheduling": {"tolerations": [*tolerations, tolerations[0]]},
    }
    calls = Counter()
    sys.setprofile(lambda _frame, event, _argument: calls.update((event,)))
    try:
        found = [*runtime_class.KIND.validation.create(tree)]
    finally:
        sys.setprofile(None)
    fields = [error.field for error in found if "Duplicate" in str(error)]
    return fields, calls["call"] + calls["c_call"]


def test_each_runtime_class_toleration_needs_the_same_calls():
    errors_and_calls(300)  # the first time makes what is kept
    found = [errors_and_calls(count) for count in (100, 200, 300)]
    assert [fields for fields, _ in found] == [
        [f"scheduling.tolerations[{count}]"] for count in (100, 200, 300)
    ]
    first, second, third = (calls for _, calls in found)
    assert third - second == second - first > 100


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("iqn.2001-04.com.example:storage.disk1", True),
        ("iqn.2001-04.com.example:a:b", True),
        ("iqn.2001-04.com:x iqn.2001-04.com:y", True),
        ("iqn.2001-04.com.example", False),
        ("iqn.2001-04.com.example:", False),
        ("iqn.2001-04.com.example::", True),
        ("iqn.2001-04.:a", False),
        ("iqn.2001-04.com.example:a b", False),
        ("iqn.2001-04.com.example:a\n", False),
        ("iqn.2001-04.com_x:a", False),
        ("iqnx.iqn.2001-04.com.example:a", True),
        ("iqn.01-04.com.example:a", False),
    ],
)
def test_iscsi_names_are_validated(name, good):
    assert _is_qualified_name(name) is good


@pytest.mark.timed
@pytest.mark.parametrize("text", ["iqn.0000-00.i", ":", "iqn.0000-00.i:"])
def test_long_iscsi_names_take_linear_time(text):
    check_linear(lambda size: text * size, _is_qualified_name, 5_000)


@pytest.mark.parametrize(
    ("target", "fields"),
    [
        ("metadata.labels['a']", []),
        ("metadata.labels['a']['b']", ["x"]),
        ("['a']", ["x.fieldPath"]),
        ("metadata.labels['']", ["x", "x"]),
        ("spec.x['a']", ["x.fieldPath"]),
        ("metadata.labels['a", ["x.fieldPath"]),
    ],
)
def test_fieldpath_subscripts_are_validated(target, fields):
    found = check_field_of_volume({"apiVersion": "v1", "fieldPath": target}, PATH)
    assert [error.field for error in found] == fields


BLOCK = b"-----BEGIN A-----\nYQ==\n-----END A-----\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (BLOCK, [("A", b"", b"a")]),
        (b"x\n" + BLOCK + b"y\n" + BLOCK, [("A", b"", b"a"), ("A", b"", b"a")]),
        (b"-----BEGIN B-----\n" + BLOCK, [("A", b"", b"a")]),
        (b"-----BEGIN A-----\nk: v\n\nYQ==\n-----END A-----", [("A", b"k: v\n", b"a")]),
        (b"-----BEGIN A-----\n-----END A-----\n", [("A", b"", b"")]),
        (b"-----BEGIN A-----\r\nYQ==\r\n-----END A----- \t\n", [("A", b"", b"a")]),
        (b"-----BEGIN A-----\nYQ==\n-----END B-----\n", []),
        (b"-----BEGIN A-----\n?\n-----END A-----\n" + BLOCK, [("A", b"", b"a")]),
        (b"-----BEGIN A-----\nYQ==\n-----END A-----x\n", []),
        (b"x-----BEGIN A-----\nYQ==\n-----END A-----\n", []),
        (b"-----BEGIN \xff-----\nYQ==\n-----END \xff-----\n", [("\ufffd", b"", b"a")]),
    ],
)
def test_pem_blocks_are_validated(text, found):
    assert [(block.type, block.headers, block.data) for block in pem.blocks(text)] == found


@pytest.mark.timed
@pytest.mark.parametrize(
    "part",
    [
        b"-----BEGIN A-----\n",
        b"a:\n",
        b"-----BEGIN A-----\na:b\n",
        BLOCK,
        b"\n-----END A-----",
        b"-",
        b"\n-----END ",
    ],
)
@pytest.mark.parametrize("begin", [b"", b"-----BEGIN A-----\n"])
def test_long_pem_takes_linear_time(begin, part):
    check_linear(lambda size: begin + part * (size // len(part)), pem.blocks, 100_000)
