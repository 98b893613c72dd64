"""Whether commands print in colors."""

from types import SimpleNamespace

import pytest

from mockube.cli.output import is_colored


@pytest.mark.parametrize(
    ("is_terminal", "no_color", "expected"),
    [(True, None, True), (True, "", True), (True, "1", False), (False, None, False)],
)
def test_colors_are_for_terminals_unless_variable_forbids_them(monkeypatch, is_terminal, no_color, expected):
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: is_terminal))
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert is_colored() is expected
