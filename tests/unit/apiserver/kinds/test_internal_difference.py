"""Differences between specs: as a unified diff, and for large specs in linear time."""

import pytest

from mockube.apiserver.kinds.common.internal import difference

LARGE = 3_000
SHOWN = 1_000
LINES_OF_ALIAS = 6


def spec(count, changed=()):
    aliases = [{"ip": "1.1.1.1", "hostnames": [f"h{n}x" if n in changed else f"h{n}"]} for n in range(count)]
    return {"hostAliases": aliases, "containers": [{"name": "c", "image": "i"}]}


def changed_lines(text):
    head, *lines = text.splitlines()
    assert head.startswith("@@ -")
    return [line for line in lines if not line.startswith(" ")]


@pytest.mark.thorough
@pytest.mark.parametrize("count", [3, LARGE])
def test_difference_shows_one_changed_line_with_its_context(count):
    at = count // 2
    text = difference("core.PodSpec", spec(count), spec(count, {at}))
    removed, added = changed_lines(text)
    assert (removed.split(), added.split()) == (["-", f'"h{at}"'], ["+", f'"h{at}x"'])
    assert [line[0] for line in text.splitlines()[1:]] == [*"   -+   "]


@pytest.mark.thorough
@pytest.mark.parametrize("count", [3, LARGE])
def test_equal_specs_have_no_difference(count):
    assert difference("core.PodSpec", spec(count), spec(count)) == ""


def test_large_difference_shows_first_lines_between_changes():
    first, last = 1, LARGE - 2
    text = difference("core.PodSpec", spec(LARGE), spec(LARGE, {first, last}))
    lines = changed_lines(text)
    removed = [line for line in lines if line.startswith("-")]
    added = [line for line in lines if line.startswith("+")]
    assert '"h1"' in removed[0]
    assert '"h1x"' in added[0]
    assert lines == removed + added
    assert len(removed) == len(added) == SHOWN + 1
    between = 1 + (last - first) * LINES_OF_ALIAS
    assert removed[-1] == f"-... ({between - SHOWN} more lines)"
    assert added[-1] == f"+... ({between - SHOWN} more lines)"


@pytest.mark.parametrize("counts", [(LARGE, LARGE + 1), (LARGE + 1, LARGE)])
def test_large_difference_counts_its_lines(counts):
    before, after = map(spec, counts)
    text = difference("core.PodSpec", before, after)
    head, *lines = text.splitlines()
    old, new = (range_.split(",") for range_ in head.strip("@ -").split(" +"))
    assert int(old[1]) == sum(line[0] in " -" for line in lines)
    assert int(new[1]) == sum(line[0] in " +" for line in lines)
    assert len(changed_lines(text)) == 6
