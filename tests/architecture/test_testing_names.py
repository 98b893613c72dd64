"""The rules for names in tests find a violation on its line, and accept plain names."""

import pytest

from tests.architecture.rules import testing
from tests.architecture.source import Module


def lines(check, path, code):
    return [finding.line for finding in check(Module.of(path, code))]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("def test_who_is_told(): ...", [1], id="words for persons"),
        pytest.param("class TestPod:\n    async def test_pod_asks_nobody(self): ...", [2], id="a method"),
        pytest.param("def test_it_is_ready(): ...\ndef test_what_is_left(): ...", [1, 2], id="pronouns"),
        pytest.param("def test_pod_is_ready(): ...\ndef test_pod_after_it(): ...", [], id="clear subject"),
        pytest.param("def told(): ...\ndef testing_who(): ...", [], id="other functions"),
    ],
)
def test_names_of_tests(code, expected):
    assert lines(testing.check_names, "tests/test_planted.py", code) == expected
