"""The names of the files of failed tests."""

import pytest

from mockube.failure_report import file_name


@pytest.mark.parametrize(
    ("test", "part", "name"),
    [
        ("tests/test_web.py::TestWeb::test_it", "", "tests-test_web.py-TestWeb-test_it.html"),
        ("test_web.py::test_it", "-setup-2", "test_web.py-test_it-setup-2.html"),
        ("t.py::t[a b]", "", "t.py-t-a-b--84eb8a4f.html"),
    ],
)
def test_name_is_that_of_the_test(test, part, name):
    assert file_name(test, part) == name


def test_names_of_different_tests_differ_and_are_short():
    names = {file_name(f"t.py::t[{case}]", "") for case in ("a/b", "a-b", "a b", "x" * 500, "x" * 501)}
    assert len(names) == 5
    assert max(map(len, names)) < 200
