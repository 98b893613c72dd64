"""The server of a command: by the flags, by $KUBECONFIG, or the cluster without a name."""

import argparse
import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import yaml

from mockube.cli import target
from mockube.cli.main import COMMANDS, main
from mockube.cli.parsing import CommandParser
from mockube.clusters import kubeconfig_variable
from mockube.clusters.named_cluster import cluster_folder, hold_lock, write_record
from mockube.component_base.clock import SteppedClock
from mockube.failure import Failure, Missing, UsageError
from tests.support.processes.clusters import ready

OTHER = "https://127.0.0.1:9"


def write_kubeconfig(path, server, token="admin"):
    tree = {
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {"token": token}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    path.write_text(yaml.safe_dump(tree))
    return path


@asynccontextmanager
async def running(name):
    """Yield the folder of a cluster that runs as far as commands can see."""
    folder, url = cluster_folder(name, os.environ), f"https://{name}.test:6443"
    folder.prepare()
    write_kubeconfig(folder.kubeconfig, url)
    write_record(folder, ready(url))
    async with hold_lock(folder, SteppedClock()):
        yield folder


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    for name in ("KUBECONFIG", "MOCKUBE_NAME", "MOCKUBE_KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return monkeypatch


@pytest.fixture
def version(monkeypatch):
    """Let every server return a version, with the gitCommit that is the item."""
    versions = ["mockube-1"]
    body = {"gitVersion": "v1.37.2"}
    monkeypatch.setattr(
        kubeconfig_variable,
        "get",
        lambda *_: (200, msgspec.json.encode({**body, "gitCommit": versions[0]})),
    )
    return versions


def parser_of(command):
    parser = CommandParser(prog="mockube try")
    command.add_flags(parser)
    return parser


def options(*arguments):
    parser = CommandParser(prog="mockube try")
    target.add_server_flags(parser)
    return parser.read([*arguments], os.environ)


async def test_cluster_of_kubeconfig_variable_is_used(environment, tmp_path, capsys):
    async with running("blue") as blue:
        users = write_kubeconfig(tmp_path / "alice", "https://blue.test:6443", token="alice")
        environment.setenv("KUBECONFIG", str(users))
        assert target.find_target(options()) == (users, "blue")
        assert target.server_access(options()).token == "alice"
        assert target.chosen_name(options()) == "blue"
        assert target.find_target(options(), only_own=True).kubeconfig == users
        assert blue.name == "blue"
    assert capsys.readouterr().err == ""


async def test_moment_of_a_cluster_is_of_that_cluster(environment, tmp_path):
    async with running("blue"):
        path = write_kubeconfig(tmp_path / "past", "https://blue.test:6443/mockube/at/5")
        environment.setenv("KUBECONFIG", str(path))
        assert target.find_target(options()) == (path, "blue")


async def test_other_cluster_than_the_default_is_reported(environment, capsys):
    async with running("default"), running("blue") as blue:
        environment.setenv("KUBECONFIG", str(blue.kubeconfig))
        target.find_target(options())
        reported = capsys.readouterr().err
        environment.setenv("KUBECONFIG", str(cluster_folder("default", os.environ).kubeconfig))
        target.find_target(options())
    assert (
        reported
        == 'mockube: $KUBECONFIG leads to "blue", which is used; --name=default chooses the other cluster\n'
    )
    assert capsys.readouterr().err == ""


async def test_name_takes_precedence_over_kubeconfig_variable(environment):
    async with running("default") as default, running("blue") as blue:
        environment.setenv("KUBECONFIG", str(blue.kubeconfig))
        assert target.find_target(options("--name=default")) == (default.kubeconfig, "default")
        environment.setenv("MOCKUBE_NAME", "default")
        assert target.find_target(options()) == (default.kubeconfig, "default")


async def test_stopped_cluster_of_kubeconfig_variable_is_named(environment):
    async with running("blue") as blue:
        environment.setenv("KUBECONFIG", str(blue.kubeconfig))
    async with running("default"):
        blue.record.unlink()
        with pytest.raises(
            Missing, match=r'"blue" is not running: `mockube up --name=blue` .* that runs: default'
        ):
            target.find_target(options())


async def test_other_server_of_mockube_is_used(environment, tmp_path, version, capsys):
    async with running("default") as default:
        path = write_kubeconfig(tmp_path / "other", OTHER)
        environment.setenv("KUBECONFIG", str(path))
        assert target.find_target(options()) == (path, "")
        assert f"leads to {OTHER}, which is used" in capsys.readouterr().err
        assert target.find_target(options(), only_own=True).kubeconfig == default.kubeconfig
        assert target.chosen_name(options()) == "default"


async def test_foreign_server_is_refused_where_a_command_might_change_it(
    environment, tmp_path, version, capsys
):
    version[0] = "f3ee9c6a"
    environment.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "foreign", OTHER)))
    async with running("default") as default:
        with pytest.raises(Failure, match=f"leads to {OTHER}, which is no server of mockube; choose"):
            target.find_target(options())
        assert target.find_target(options(), only_own=True).kubeconfig == default.kubeconfig
        assert target.chosen_name(options()) == "default"
        assert capsys.readouterr().err.count('no cluster of this machine: "default" is used') == 2
        assert target.name_flag_here(default) == " --name=default"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere", "nowhere: No such file or directory; choose a cluster with --name"),
        ("foreign:nowhere", "KUBECONFIG names several files; choose a cluster with --name"),
    ],
)
async def test_unusable_variable_is_refused_by_every_command(environment, tmp_path, name, says):
    write_kubeconfig(tmp_path / "foreign", OTHER)
    environment.setenv("KUBECONFIG", ":".join(str(tmp_path / part) for part in name.split(":")))
    async with running("default") as default:
        for only_own in (False, True):
            with pytest.raises(Failure, match=says):
                target.find_target(options(), only_own=only_own)
        with pytest.raises(Failure, match=says):
            target.chosen_name(options())
        assert target.chosen_name(options("--name=default")) == "default"
        assert target.name_flag_here(default) == " --name=default"


CHOOSING = {
    name: command
    for name, command in COMMANDS.items()
    if name not in {"up", "lint"} and "--name" in parser_of(command).flags()
}
"""The commands that choose an existing cluster."""


@pytest.mark.parametrize("command", CHOOSING.values(), ids=CHOOSING)
def test_every_command_leaves_the_choice_of_the_cluster_to_the_variable(command):
    names = [
        action.default
        for parser in (parser_of(command), *parser_of(command)._command_parsers())
        for action in parser._actions
        if "--name" in action.option_strings
    ]
    assert {*names} == {None}


ARGUMENTS = {
    "kubectl": ["get", "pods"],
    "why": ["pod/web"],
    "at": ["-5m"],
    "log": ["pod/web"],
    "blame": ["pod/web"],
    "diff": ["-5m"],
    "rewind": ["-5m"],
    "fork": ["copy"],
    "mark": ["before"],
    "fault": ["list"],
    "trace": ["--output=trace.json"],
    "report": ["--output=report.md"],
    "rbac": ["--user=alice"],
    "clock": ["show"],
    "node-shell": ["node-1"],
    "images": ["load", "nginx"],
    "import": ["objects.yaml"],
    "snapshot": ["save", "cluster.snapshot"],
}
"""The arguments that a command needs."""


@pytest.mark.parametrize("command", CHOOSING)
async def test_flags_and_variables_name_the_same_cluster(environment, tmp_path, monkeypatch, capsys, command):
    """Beside a cluster that runs, each way chooses another one, which is gone."""
    write_kubeconfig(tmp_path / "objects.yaml", OTHER)  # some objects to import
    monkeypatch.chdir(tmp_path)
    arguments, found = ARGUMENTS.get(command, []), {}

    async def call(way, *line):
        assert await asyncio.to_thread(main, line) != 0
        found[way] = capsys.readouterr().err

    async with running("default"):
        await call("flag", command, "--name=blue", *arguments)
        await call("flag before the command", "--name=blue", command, *arguments)
        for variable, text in {
            "MOCKUBE_NAME": "blue",
            "KUBECONFIG": str(cluster_folder("blue", os.environ).kubeconfig),
        }.items():
            with monkeypatch.context() as variables:
                variables.setenv(variable, text)
                await call(variable, command, *arguments)
    assert {way: 'there is no cluster "blue"' in text for way, text in found.items()} == dict.fromkeys(
        found, True
    )


async def test_variable_of_a_deleted_cluster_chooses_no_other_one(environment, tmp_path, capsys):
    async with running("default"):
        environment.setenv("KUBECONFIG", str(cluster_folder("blue", os.environ).kubeconfig))
        assert target.chosen_name(options()) == "blue"
        for arguments in (["down"], ["down", "--delete"], ["kubeconfig"], ["reset"], ["status"], ["logs"]):
            assert main(arguments) != 0
            assert 'there is no cluster "blue"' in capsys.readouterr().err
        with pytest.raises(Missing, match='there is no cluster "blue"'):
            target.find_target(options(), only_own=True)


async def test_path_of_the_cluster_of_the_variable_is_printed(environment, capsys):
    async with running("default"), running("blue") as blue:
        environment.setenv("KUBECONFIG", str(blue.kubeconfig))
        assert main(["kubeconfig", "--path"]) == 0
        assert main(["kubeconfig", "--path", "--name=default"]) == 0
        default = cluster_folder("default", os.environ)
    assert capsys.readouterr().out.split() == [str(blue.kubeconfig), str(default.kubeconfig)]


def test_server_that_does_not_respond_is_reported(environment, tmp_path, monkeypatch):
    def refuse(*_):
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(kubeconfig_variable, "get", refuse)
    environment.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "other", OTHER)))
    with pytest.raises(Failure, match=f"leads to {OTHER}, which does not respond: refused"):
        target.find_target(options())


def test_flag_takes_precedence_over_the_variable_of_the_other_one(environment, tmp_path):
    path = write_kubeconfig(tmp_path / "other", OTHER)
    with pytest.raises(UsageError, match="--name and --kubeconfig choose a server each"):
        target.find_target(options("--name=blue", f"--kubeconfig={path}"))
    environment.setenv("MOCKUBE_NAME", "blue")
    assert target.find_target(options(f"--kubeconfig={path}")) == (path, "")
    environment.setenv("MOCKUBE_KUBECONFIG", str(path))
    assert target.find_target(options()) == (path, "")
    with pytest.raises(Missing, match='there is no cluster "red"'):
        target.find_target(options("--name=red"))


def test_missing_kubeconfig_of_the_flag_is_missing():
    with pytest.raises(Missing, match="nowhere: No such file"):
        target.find_target(argparse.Namespace(name=None, kubeconfig=Path("nowhere")))


async def test_later_commands_need_no_flag_where_they_reach_the_cluster(environment):
    async with running("default") as default, running("blue") as blue:
        assert [target.name_flag_here(each) for each in (default, blue)] == ["", " --name=blue"]
        environment.setenv("KUBECONFIG", str(default.kubeconfig))
        assert target.name_flag_here(default) == ""
        environment.setenv("KUBECONFIG", str(blue.kubeconfig))
        assert target.name_flag_here(default) == " --name=default"
