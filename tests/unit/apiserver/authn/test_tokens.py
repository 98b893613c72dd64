"""The static token file: the format of a line, and which line of a duplicate token applies."""

import logging

import pytest

from mockube.apiserver.authn.authenticators import BadToken, BearerTokens
from mockube.apiserver.authn.token_file import BadTokenFile, StaticTokens, parse
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock


def test_token_file_line_names_user_and_groups():
    assert parse(['t, bob , 7,"dev, ops,,"', "", "u,eve,"], "f") == {
        "t": User(name="bob", uid="7", groups=("dev", "ops", "system:authenticated")),
        "u": User(name="eve", groups=("system:authenticated",)),
    }


@pytest.mark.parametrize("line", [",bob,1", " ,bob,1", "\t,bob,1", '"",bob,1', "t,bob", "t,,1", "t, ,1", "t"])
def test_token_file_line_without_token_or_user_is_refused_by_number(line):
    with pytest.raises(BadTokenFile, match=r"^f:2: a line must be token,user,uid"):
        parse(["a,b,c", line], "f")


def test_duplicate_token_uses_last_line_with_warning(caplog):
    with caplog.at_level(logging.WARNING):
        assert parse(["t,bob,1", "t,eve,2"], "f")["t"].name == "eve"
    assert "f:2: duplicate token: the last line is used" in caplog.text
    assert "t,eve" not in caplog.text


async def test_malformed_token_is_refused():
    tokens = BearerTokens((StaticTokens({"t": User(name="bob")}),), audiences=(), clock=SteppedClock())
    for text in ("", " ", "t ", "T", "t\x00"):
        with pytest.raises(BadToken):
            await tokens.review(text)
