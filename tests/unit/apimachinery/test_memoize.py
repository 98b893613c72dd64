"""Which results are memoized, and which are not."""

from mockube.apimachinery.memoize import memoize


def counted_length(**limits):
    asked = []

    @memoize(**limits)
    def length(text):
        asked.append(text)
        return len(text)

    return length, asked


def test_memoized_result_is_not_recomputed():
    length, asked = counted_length(max_entries=2, max_length=3)
    assert (length("abc"), length("abc"), asked) == (3, 3, ["abc"])


def test_long_texts_are_not_memoized():
    length, asked = counted_length(max_entries=2, max_length=3)
    assert (length("abcd"), length("abcd"), asked) == (4, 4, ["abcd"] * 2)


def test_number_of_memoized_results_is_limited():
    length, asked = counted_length(max_entries=2, max_length=3)
    for text in ("a", "b", "c", "c", "a"):
        length(text)
    assert asked == ["a", "b", "c", "a"]
