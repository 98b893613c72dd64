"""UnitedDeployment: allocation of replicas to subsets, with the documented numbers of each method."""

import pytest

from mockube.packs.kruise.controllers.uniteddeployment.allocator import (
    AllocationError,
    SubsetInfo,
    allocate,
)


def allocated_replicas(total, places, *, adapts=False, reserves=False):
    return [*allocate(total, places, adapts=adapts, reserves=reserves).items()]


# --- specified replicas


def current_subsets(*specified, **current):
    """Return subsets with these current replicas; the first ones have specified replicas."""
    asked = [*specified, *[None] * (len(current) - len(specified))]
    return [
        SubsetInfo(name=name, current=count, exists=True, replicas=replicas)
        for (name, count), replicas in zip(current.items(), asked, strict=True)
    ]


FOUR = {"t1": 1, "t2": 4, "t3": 2, "t4": 2}


@pytest.mark.parametrize(
    ("total", "places", "expected"),
    [
        (5, current_subsets(**FOUR), {"t1": 1, "t3": 1, "t4": 1, "t2": 2}),
        (17, current_subsets(**FOUR), {"t1": 4, "t3": 4, "t4": 4, "t2": 5}),
        (9, current_subsets(t1=2, t2=4, t3=2, t4=2), {"t1": 2, "t3": 2, "t4": 2, "t2": 3}),
        (19, current_subsets(t1=0, t2=10), {"t1": 9, "t2": 10}),
        (21, current_subsets(t1=0, t2=10), {"t1": 10, "t2": 11}),
        (0, current_subsets(t1=2), {"t1": 0}),
        (27, current_subsets(4, None, 4, **FOUR), {"t1": 4, "t3": 4, "t4": 9, "t2": 10}),
        (8, current_subsets(4, None, 4, t1=2, t2=4, t3=2, t4=2), {"t2": 0, "t4": 0, "t1": 4, "t3": 4}),
        (10, current_subsets(1, 2, 3, t1=4, t2=2, t3=2, t4=2), {"t1": 1, "t2": 2, "t3": 3, "t4": 4}),
        (None, current_subsets(1, 2, 3, 4, **FOUR), {"t1": 1, "t2": 2, "t3": 3, "t4": 4}),
        (10, current_subsets(9, a=0, b=0), {"a": 9, "b": 1}),
        (10, current_subsets("40%", a=0, b=0), {"a": 4, "b": 6}),
        (10, current_subsets("30%", a=0, b=0), {"a": 3, "b": 7}),
        (3, current_subsets("25%", "25%", a=0, b=0, c=0), {"a": 1, "b": 1, "c": 1}),
        (4, current_subsets("25%", "25%", a=1, b=1, c=1), {"a": 1, "b": 1, "c": 2}),
        (1, current_subsets("25%", "25%", a=1, b=1, c=2), {"a": 0, "b": 0, "c": 1}),
        (1, current_subsets(a=0, b=0), {"a": 0, "b": 1}),
        (4, current_subsets("x", a=0, b=0), {"a": 2, "b": 2}),
        (0, [], {}),
    ],
)
def test_specified_replicas(total, places, expected):
    assert dict(allocated_replicas(total, places)) == expected


@pytest.mark.parametrize(
    ("total", "places", "problem"),
    [
        (14, current_subsets(6, 6, t1=10, t2=4), "(12) is less than UnitedDeployment replica (14)"),
        (14, current_subsets(10, 11, t1=10, t2=4), "(21) is greater than UnitedDeployment replica (14)"),
        (5, current_subsets(9, a=0, b=0), "(9) is greater than UnitedDeployment replica (5)"),
        (5, [], "(0) is less than UnitedDeployment replica (5)"),
    ],
)
def test_unsatisfiable_replicas_are_refused(total, places, problem):
    with pytest.raises(AllocationError) as refused:
        allocated_replicas(total, places)
    assert str(refused.value) == f"specified subsets' replica {problem}"


@pytest.mark.parametrize("first", [None, "50%"])
def test_unspecified_total_needs_all_subset_replicas(first):
    with pytest.raises(AllocationError) as refused:
        allocated_replicas(None, current_subsets(first, 2, a=0, b=0))
    assert str(refused.value) == "all subsets must be specified when UnitedDeployment replica is unspecified"


# --- bounds

ENDLESS = None


def bounded_subsets(minimum, maximum, **states):
    """Return subsets with these bounds; each state is a list with a value per subset."""
    rows = [{field: values[number] for field, values in states.items()} for number in range(len(maximum))]
    return [
        SubsetInfo(name=f"s{number}", min_replicas=low, max_replicas=high, **row)
        for number, (low, high, row) in enumerate(zip(minimum, maximum, rows, strict=True))
    ]


FIVE = ([2] * 5, [5, 5, 5, 5, ENDLESS])
THREE = ([1] * 3, [2, 2, ENDLESS])


@pytest.mark.parametrize(
    ("total", "minimum", "maximum", "expected"),
    [
        (5, [2, 2], [4, ENDLESS], [3, 2]),
        (10, *FIVE, [2, 2, 2, 2, 2]),
        (14, *FIVE, [5, 3, 2, 2, 2]),
        (5, *FIVE, [2, 2, 1, 0, 0]),
        (3, *THREE, [1, 1, 1]),
        (7, *THREE, [2, 2, 3]),
        (1, *THREE, [1, 0, 0]),
        (10, ["20%", 0], ["30%", ENDLESS], [3, 7]),
        (None, [0, 0], [2, ENDLESS], [0, 0]),
        (4, ["x", 0], [3, ENDLESS], [3, 1]),
        (4, [0, 0], ["x", ENDLESS], [0, 4]),
    ],
)
def test_bounded_replicas(total, minimum, maximum, expected):
    assert [share for _, share in allocated_replicas(total, bounded_subsets(minimum, maximum))] == expected


@pytest.mark.parametrize("way", [{}, {"adapts": True}, {"adapts": True, "reserves": True}])
def test_equal_bounds_fix_replicas(way):
    with pytest.raises(AllocationError) as refused:
        allocated_replicas(5, bounded_subsets([0, 3], [ENDLESS, 2]), **way)
    assert str(refused.value) == "subset[1].maxReplicas(2) must be more than or equal to minReplicas(3)"


# --- bounds that follow the cluster


def pending_subsets(minimum, maximum, current, waiting):
    """Return subsets with pods waiting for a node; -1 marks an unschedulable subset without such pods."""
    return bounded_subsets(
        minimum,
        maximum,
        exists=[True] * len(current),
        current=current,
        ready=[count - max(few, 0) for count, few in zip(current, waiting, strict=True)],
        unschedulable=[few != 0 for few in waiting],
    )


NARROW = ([3, 0], [5, ENDLESS])
WIDE = ([0, 0, 0, 0], [2, ENDLESS, ENDLESS, ENDLESS])


@pytest.mark.parametrize(
    ("total", "current", "waiting", "bounds", "expected"),
    [
        (10, [5, 5], [5, 0], NARROW, [3, 7]),
        (10, [5, 5], [4, 0], NARROW, [3, 7]),
        (10, [5, 5], [3, 0], NARROW, [3, 7]),
        (10, [5, 5], [2, 0], NARROW, [3, 7]),
        (10, [5, 5], [0, 0], NARROW, [5, 5]),
        (3, [2, 2], [0, 0], ([1, 0], [2, ENDLESS]), [2, 1]),
        (1, [2, 1], [0, 0], ([1, 0], [2, ENDLESS]), [1, 0]),
        (3, [1, 3], [1, 0], ([1, 0], [2, ENDLESS]), [1, 2]),
        (3, [1, 3], [1, 0], ([0, 0], [2, ENDLESS]), [0, 3]),
        (4, [0, 0, 0, 0], [0, 0, 0, 0], WIDE, [2, 2, 0, 0]),
        (4, [2, 2, 0, 0], [0, 2, 0, 0], WIDE, [2, 0, 2, 0]),
        (4, [2, 0, 2, 0], [0, -1, 2, 0], WIDE, [2, 0, 0, 2]),
        (8, [2, 0, 0, 2], [0, -1, -1, 0], WIDE, [2, 0, 0, 6]),
        (8, [2, 0, 0, 2], [0, 0, 0, 0], WIDE, [2, 4, 0, 2]),
    ],
)
def test_adaptive_replicas(total, current, waiting, bounds, expected):
    replicas = allocated_replicas(total, pending_subsets(*bounds, current, waiting), adapts=True)
    assert [share for _, share in replicas] == expected


def test_missing_subset_is_allocated_like_others():
    assert allocated_replicas(3, bounded_subsets([0, 0], [2, ENDLESS]), adapts=True) == [("s0", 2), ("s1", 1)]


# --- reserved pods


def reserved_subsets(minimum, maximum, current, reserved):
    """Return subsets with reserved pods; -1 marks one that was unschedulable and has none."""
    return bounded_subsets(
        minimum,
        maximum,
        exists=[True] * len(current),
        current=current,
        reserved=[max(few, 0) for few in reserved],
        unschedulable=[few > 0 for few in reserved],
        was_unschedulable=[few < 0 for few in reserved],
    )


ONES = ([1] * 4, [2, 2, 2, ENDLESS])
TWOS = ([2] * 4, [4, 4, 4, ENDLESS])
FREE = ([None] * 3, [ENDLESS] * 3)


@pytest.mark.parametrize(
    ("total", "current", "reserved", "bounds", "expected"),
    [
        (8, [0, 0, 0, 0], [0, 0, 0, 0], ONES, [2, 2, 2, 2]),
        (8, [2, 2, 2, 2], [0, 2, 2, 0], ONES, [2, 2, 2, 6]),
        (8, [2, 2, 2, 6], [0, 1, 1, 0], ONES, [2, 2, 2, 4]),
        (8, [2, 2, 2, 4], [0, -1, 1, 0], ONES, [2, 2, 2, 3]),
        (16, [2, 2, 2, 6], [0, 1, 1, 0], TWOS, [4, 2, 2, 10]),
        (16, [4, 2, 2, 10], [0, -1, -1, 0], TWOS, [4, 4, 4, 8]),
        (2, [2, 2, 0], [2, 2, 0], FREE, [2, 2, 2]),
        (2, [2, 2, 1], [0, 1, 0], FREE, [2, 0, 0]),
        (4, [2, 2, 4], [4, -1, 0], FREE, [2, 4, 2]),
        (4, [2, 2, 4], [-1, 2, 0], FREE, [4, 2, 2]),
        (2, [1, 1, 0], [1, 1, 0], ([1, 1, 0], [ENDLESS] * 3), [1, 1, 2]),
    ],
)
def test_reserved_replicas(total, current, reserved, bounds, expected):
    replicas = allocated_replicas(
        total, reserved_subsets(*bounds, current, reserved), adapts=True, reserves=True
    )
    assert [share for _, share in replicas] == expected
