"""The reference of flags says what the code says."""

from tools.flags_page import PAGE, page


def test_the_reference_of_flags_is_that_of_this_code():
    assert PAGE.read_text() == page(), "write it anew: make flags"
