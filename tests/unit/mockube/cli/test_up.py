"""Flags of `mockube up`, and its warnings for a cluster that other machines can reach."""

import pytest

from mockube.apiserver.config import settings
from mockube.cli.parsing import CommandParser
from mockube.cli.up import GROUPS, _exposure_warnings_of_flags, add_flags
from mockube.component_base.flags import flags_of
from mockube.controller_manager.config import settings as manager_settings


@pytest.fixture
def options(monkeypatch):
    """Return a parser of arguments, without environment variables of the API server."""
    for name in ("AUTHORIZATION_MODE", "ALLOWED_HOSTS"):
        monkeypatch.delenv(f"MOCKUBE_APISERVER_{name}", raising=False)
    parser = CommandParser(prog="mockube up")
    add_flags(parser)
    return lambda *arguments: parser.read(arguments, {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], [], id="defaults"),
        pytest.param(["--authorization-mode=Node,RBAC"], [], id="RBAC"),
        pytest.param(["--authorization-mode=AlwaysAllow"], ["--authorization-mode=Always"], id="AlwaysAllow"),
        pytest.param(["--allowed-hosts=a.b,*"], ["--allowed-hosts=*"], id="any name"),
    ],
)
def test_flags_of_up_are_parsed(options, arguments, words):
    lines = _exposure_warnings_of_flags(options(*arguments))
    assert [line[: len(word)] for line, word in zip(lines, words, strict=True)] == words


def test_exposure_follows_environment_of_server(options, monkeypatch):
    monkeypatch.setenv("MOCKUBE_APISERVER_AUTHORIZATION_MODE", "AlwaysAllow")
    assert len(_exposure_warnings_of_flags(options())) == 1
    assert _exposure_warnings_of_flags(options("--authorization-mode=RBAC")) == []


def test_topic_of_each_flag_is_a_group_of_the_main_page():
    records = (*settings.SECTIONS.values(), *manager_settings.SECTIONS.values())
    topics = {flag.topic for record in records for flag in flags_of(record).values()}
    assert {"", *GROUPS} >= topics > {""}
