"""The reference page of the Python API matches the code."""

from mockube.testing import OPTIONS
from tools.packages import ROOT
from tools.python_page import PAGE, page


def test_python_page_is_up_to_date():
    assert PAGE.read_text() == page(), "generate it: make python-api"


def test_guide_lists_each_option_of_marker():
    guide = (ROOT / "docs/guides/testing.md").read_text()
    assert [option for option in OPTIONS if f"\n| `{option}=` |" not in guide] == []
