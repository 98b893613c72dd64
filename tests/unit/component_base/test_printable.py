"""Text of others on a terminal or in the log of a job."""

import pytest

from mockube.component_base.printable import printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a/b é 日本 😀 ::1", "a/b é 日本 😀 ::1", id="printable"),
        pytest.param("a\nb\t\x1b[31m\x9b\u2028\u202e", r"a\nb\t\x1b[31m\x9b\u2028\u202e", id="controls"),
        pytest.param("\udcff", r"\udcff", id="cannot be encoded"),
        pytest.param("::error file=a::b", r":\:error file=a::b", id="command of GitHub"),
        pytest.param("  ::error::b", r"  :\:error::b", id="command after blanks"),
        pytest.param("a ::error::b", "a ::error::b", id="no command inside of a line"),
        pytest.param("a ##[error]b", r"a #\#[error]b", id="old command of GitHub"),
        pytest.param("##vso[task.complete]", r"#\#vso[task.complete]", id="command of Azure"),
        pytest.param("## Heading", "## Heading", id="no command"),
    ],
)
def test_text_is_on_one_line_and_no_command(text, expected):
    assert printable(text) == expected
