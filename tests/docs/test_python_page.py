"""The reference page of the Python API matches the code."""

from tools.python_page import PAGE, page


def test_python_page_is_up_to_date():
    assert PAGE.read_text() == page(), "generate it: make python-api"
