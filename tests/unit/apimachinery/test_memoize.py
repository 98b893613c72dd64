"""What is remembered, and what is not."""

from mockube.apimachinery.memoize import memoize


def counted(**limits):
    asked = []

    @memoize(**limits)
    def length(text):
        asked.append(text)
        return len(text)

    return length, asked


def test_what_was_answered_is_not_worked_out_again():
    length, asked = counted(max_entries=2, max_length=3)
    assert (length("abc"), length("abc"), asked) == (3, 3, ["abc"])


def test_long_texts_are_worked_out_each_time():
    length, asked = counted(max_entries=2, max_length=3)
    assert (length("abcd"), length("abcd"), asked) == (4, 4, ["abcd"] * 2)


def test_more_than_the_most_are_never_kept():
    length, asked = counted(max_entries=2, max_length=3)
    for text in ("a", "b", "c", "c", "a"):
        length(text)
    assert asked == ["a", "b", "c", "a"]
