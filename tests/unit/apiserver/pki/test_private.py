"""Private files: mode 0600, written completely or not at all, and never through a planted file or link."""

import os
import stat

import pytest

from mockube.apiserver.pki.private import write_private


@pytest.fixture(autouse=True)
def _open_mask():
    mask = os.umask(0)
    yield
    os.umask(mask)


def test_private_file_has_mode_0600_even_if_it_existed(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(b"old")
    path.chmod(0o666)
    write_private(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_link_is_replaced_and_not_followed(tmp_path):
    path, target = tmp_path / "key", tmp_path / "target"
    target.write_bytes(b"of another")
    path.symlink_to(target)
    write_private(path, b"secret")
    assert (path.read_bytes(), target.read_bytes(), path.is_symlink()) == (b"secret", b"of another", False)


def test_planted_temporary_file_is_not_used(tmp_path):
    waiting = tmp_path / f".key.{os.getpid()}"
    waiting.write_bytes(b"")
    waiting.chmod(0o666)
    write_private(tmp_path / "key", b"secret")
    assert waiting.read_bytes() == b""


def test_failed_write_leaves_no_file(tmp_path):
    (tmp_path / "key").mkdir()
    with pytest.raises(OSError, match="key"):
        write_private(tmp_path / "key", b"secret")
    assert list(tmp_path.iterdir()) == [tmp_path / "key"]
