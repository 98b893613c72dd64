"""A data folder records the minor release that last used it; a change that Kubernetes does not support is reported."""

import pytest

from mockube.apiserver.stored_release import change_of_release, last_minor, record_minor


def test_release_of_a_folder_is_recorded(tmp_path):
    assert last_minor(tmp_path) == ""
    record_minor(tmp_path, "1.36")
    assert last_minor(tmp_path) == "1.36"
    record_minor(tmp_path, "1.37")
    assert last_minor(tmp_path) == "1.37"


@pytest.mark.parametrize("content", [b"", b"1.12", b"\xff\xfe", b"nonsense"])
def test_unreadable_record_is_no_release(tmp_path, content):
    (tmp_path / "kubernetes-version").write_bytes(content)
    assert last_minor(tmp_path) == ""


def test_release_that_cannot_be_recorded_is_reported(tmp_path, caplog):
    record_minor(tmp_path / "missing", "1.36")
    assert "the release cannot be recorded" in caplog.text


@pytest.mark.parametrize("last", ["", "1.36"])
def test_same_or_unknown_release_is_no_change(last):
    assert change_of_release(last, "1.36") is None


@pytest.mark.parametrize(
    ("last", "minor", "words", "is_supported"),
    [
        ("1.36", "1.37", "and is upgraded to 1.37", True),
        ("1.33", "1.37", "one minor release at a time, to 1.34 before 1.37", False),
        ("1.37", "1.36", "does not support a downgrade to 1.36", False),
    ],
)
def test_change_is_described(last, minor, words, is_supported):
    change = change_of_release(last, minor)
    assert change.is_supported == is_supported
    assert change.text.startswith(f"the store was last used by Kubernetes {last}")
    assert words in change.text
