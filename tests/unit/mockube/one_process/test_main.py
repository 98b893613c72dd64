"""How the process of both programs ends."""

import asyncio
import signal
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from mockube.controller_manager.control.followed_server import UnusableFlags
from mockube.one_process.__main__ import _run


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (asyncio.CancelledError(), 0),
        (ExceptionGroup("", [UnusableFlags("they do not fit")]), 1),
        (PermissionError(13, "Permission denied"), 1),
    ],
    ids=["stopped before it is ready", "flags", "system"],
)
def test_expected_end_has_no_traceback(monkeypatch, error, code):
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    ended = Future()
    ended.set_exception(error)
    assert _run(SimpleNamespace(start=lambda: None, ended=ended)) == code


def test_unexpected_error_is_raised(monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    ended = Future()
    ended.set_exception(ValueError("unexpected"))
    with pytest.raises(ValueError, match="unexpected"):
        _run(SimpleNamespace(start=lambda: None, ended=ended))
