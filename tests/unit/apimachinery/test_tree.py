from mockube.apimachinery.tree import sorted_keys


def test_members_are_sorted_at_every_depth():
    tree = {"b": [{"z": 1, "a": [[{"d": None, "c": 2.5}]]}], "B": "x", "a": {"ü": 1, "z": 2**70}}
    ordered = {"B": "x", "a": {"z": 2**70, "ü": 1}, "b": [{"a": [[{"c": 2.5, "d": None}]], "z": 1}]}

    assert repr(sorted_keys(tree)) == repr(ordered)
    assert list(tree) == ["b", "B", "a"], "the tree itself is as it was"
