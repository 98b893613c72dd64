"""Flags of `mockube up`, and its warnings for a cluster that other machines can reach."""

import pytest

from mockube.apiserver.config import settings
from mockube.apiserver.stored_release import record_minor
from mockube.cli.parsing import CommandParser
from mockube.cli.up import (
    GROUPS,
    _exposure_warnings_of_flags,
    _print_change_of_release,
    _replace_deprecated,
    add_flags,
    check_controllers,
    split_flags,
)
from mockube.clusters.named_cluster import ClusterFolder
from mockube.component_base.flags import flags_of
from mockube.controller_manager.config import settings as manager_settings
from mockube.failure import UsageError


@pytest.fixture
def options(monkeypatch):
    """Return a parser of arguments, without environment variables of the API server."""
    for name in ("AUTHORIZATION_MODE", "ALLOWED_HOSTS"):
        monkeypatch.delenv(f"MOCKUBE_APISERVER_{name}", raising=False)
    parser = CommandParser(prog="mockube up")
    add_flags(parser)
    return lambda *arguments, **environment: parser.read(arguments, environment)


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


@pytest.mark.parametrize(
    ("arguments", "environment", "pool", "number"),
    [
        pytest.param(
            [
                "--nodes=5",
                "--simulate-node-capacity=cpu=4",
                "--simulate-node-zones=a,b",
                "--node-labels=disk=ssd",
            ],
            {},
            "cpu=4,zone=a,zone=b,label=disk=ssd:5",
            3,
            id="flags",
        ),
        pytest.param(["--node_labels", "disk=ssd"], {}, "label=disk=ssd:3", 1, id="default number of nodes"),
        pytest.param([], {"MOCKUBE_SIMULATE_NODE_ZONES": "a,b"}, "zone=a,zone=b:3", 1, id="variable"),
    ],
)
def test_deprecated_flags_are_a_pool_and_reported_once(options, capsys, arguments, environment, pool, number):
    read = options(*arguments, **environment)
    _replace_deprecated(read)
    assert read.simulate_nodes.text == pool
    assert "simulate_nodes" in read.set_flags
    assert split_flags(read) == ([], []), "the manager gets the pool only"
    lines = capsys.readouterr().err.splitlines()
    assert {line.partition(" has been deprecated, ")[2] for line in lines} == {f"use --nodes={pool} instead"}
    assert len(lines) == number


@pytest.mark.parametrize(
    ("arguments", "environment", "has_all"),
    [
        ([], {}, False),
        (["--detach", "--nodes=5", "--kubernetes-version", "1.36"], {"HOME": "/root"}, False),
        (["--packs=kruise"], {}, True),
        (["--event-ttl=1m"], {}, True),
        (["--help"], {}, True),
        ([], {"MOCKUBE_EVENT_TTL": "1m"}, True),
        (None, {}, True),
    ],
)
def test_flags_of_processes_are_added_if_one_may_be_set_or_printed(
    monkeypatch, arguments, environment, has_all
):
    monkeypatch.setattr("os.environ", environment)
    parser = CommandParser(prog="mockube up")
    parser.arguments = arguments
    add_flags(parser)
    assert ("--event-ttl" in parser.flags()) is has_all


def test_help_does_not_list_deprecated_flags():
    parser = CommandParser(prog="mockube up")
    add_flags(parser)
    for page in (parser.format_help(), parser.page("all")):
        assert "--simulate-nodes" in page
        assert "--node-labels" not in page
        assert "--simulate-node-zones" not in page


@pytest.mark.parametrize(
    ("selection", "advice"),
    [
        ("*,-scheduler", ': did you mean "kube-scheduler"?'),
        ("zzzz", ", which `mockube up --help=controller-manager` lists"),
        ("*,-route", ", which `mockube up --help=controller-manager` lists"),
    ],
)
def test_unknown_controllers_are_refused_before_anything_starts(options, selection, advice):
    with pytest.raises(UsageError, match="is not in the list of known controllers") as refusal:
        check_controllers(options(f"--controllers={selection}"))
    assert str(refusal.value).endswith(advice)


def test_controllers_of_packs_and_of_older_minors_are_accepted(options):
    check_controllers(options("--controllers=*,-uniteddeployment-controller"))
    check_controllers(options("--controllers=*,-route", "--kubernetes-version=1.36"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--kubernetes-version=1.36"], ""),
        (
            ["--kubernetes-version=1.37"],
            "mockube: the store was last used by Kubernetes 1.36, and is upgraded to 1.37\n",
        ),
        (
            [],
            "mockube: the store was last used by Kubernetes 1.36, and is upgraded to 1.37 (--kubernetes-version=1.36 keeps it)\n",
        ),
        (
            ["--kubernetes-version=1.35"],
            "warning: the store was last used by Kubernetes 1.36, and Kubernetes does not support a downgrade to 1.35: ",
        ),
    ],
)
def test_other_release_of_a_kept_cluster_is_reported(options, tmp_path, capsys, arguments, expected):
    record_minor(tmp_path, "1.36")
    folder = ClusterFolder(name="kept", path=tmp_path)
    _print_change_of_release(options(f"--data-dir={tmp_path}", *arguments), folder)
    printed = capsys.readouterr().err
    assert printed.startswith(expected)
    assert bool(printed) == bool(expected)
    _print_change_of_release(options(*arguments), folder)
    assert capsys.readouterr().err == ""
