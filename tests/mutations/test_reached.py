"""When the record of the tests of a module is used again."""

from types import SimpleNamespace

import pytest

from .reached import digest_of


@pytest.fixture
def tests(tmp_path):
    path = tmp_path / "test_rules.py"
    path.write_text("")
    return [SimpleNamespace(nodeid=name, path=path) for name in ("a", "b")]


def test_record_is_used_whatever_the_order_of_the_tests(tests):
    assert digest_of(b"source", tests) == digest_of(b"source", tests[::-1])


def test_record_is_made_again_after_a_change(tests):
    before = digest_of(b"source", tests)
    assert digest_of(b"other source", tests) != before
    assert digest_of(b"source", tests[:1]) != before
    tests[0].path.write_text("changed")
    assert digest_of(b"source", tests) != before
