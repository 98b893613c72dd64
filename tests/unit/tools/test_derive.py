"""The derived data of older minors stays when a newer one follows."""

from tools.minors.derive import definition_differences, with_differences

NEWEST = {"core.Pod": ["a"], "core.Node": ["b"]}


def test_minor_that_was_newest_has_its_differences_before_those_of_older_ones():
    present = {"1.36": {"core.Pod": ["z"]}}
    older = {"core.Pod": ["a"], "core.Node": ["c"], "core.Gone": ["d"]}
    merged = with_differences(present, "1.37", NEWEST, older)
    assert [*merged.items()] == [
        ("1.37", {"core.Node": ["c"], "core.Gone": ["d"]}),
        ("1.36", {"core.Pod": ["z"]}),
    ]


def test_differences_of_minor_are_replaced():
    merged = with_differences({"1.36": {"core.Pod": ["z"]}}, "1.36", NEWEST, {"core.Pod": ["y"]})
    assert merged == {"1.36": {"core.Pod": ["y"]}}


def test_definitions_of_older_minor_are_differences_from_the_next():
    newer = {"same": 1, "changed": 2, "new": 3}
    assert definition_differences(newer, {"same": 1, "changed": 1, "old": 4}) == {
        "changed": 1,
        "new": None,
        "old": 4,
    }
    assert definition_differences({}, newer) == newer
