"""Files of commands are checked before the work for them."""

import pytest

from mockube.cli.output import check_writable
from mockube.failure import UsageError


def test_a_file_in_folders_that_are_missing_is_no_problem(tmp_path):
    check_writable(tmp_path / "a" / "b" / "run.md")
    assert not (tmp_path / "a").exists()


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is a folder"):
        check_writable(tmp_path)


def test_a_file_below_a_file_is_refused(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(UsageError, match="a is no folder"):
        check_writable(tmp_path / "a" / "run.md")


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(UsageError, match="cannot be written"):
        check_writable(tmp_path / "run.md")
