"""Of two long texts, the part where they differ is shown."""

import pytest

from mockube.component_base.text_pairs import shortened_pair


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("abc", "abd", ("abc", "abd")),
        ("x" * 12, "x" * 11 + "y", ("x" * 12, "x" * 11 + "y")),
        ("", "0123456789ABCDEF", ("", "012345678...")),
        ("0123456789ABCDEF", "", ("012345678...", "")),
        ("01234567-9ABCDEFGHI", "01234567+9ABCDEFGHI", ("...7-9ABC...", "...7+9ABC...")),
        ("01234567-9ABC", "01234567+9ABC", ("...7-9ABC", "...7+9ABC")),
        ("012345-789ABCDE", "012345+789ABCDE", ("012345-78...", "012345+78...")),
        ("0123456789ABC", "0123456789ABCD", ("...C", "...CD")),
        ("0123456-89ABC", "0123456+89ABC", ("...6-89ABC", "...6+89ABC")),
    ],
)
def test_part_where_texts_differ_is_shown(before, after, shown):
    assert shortened_pair(before, after, 12) == shown
    assert all(len(text) <= 12 for text in shortened_pair(before, after, 12))
