"""The reference page of flags matches the code."""

from tools.flags_page import PAGE, page


def test_flags_page_is_up_to_date():
    assert PAGE.read_text() == page(), "generate it: make flags"
