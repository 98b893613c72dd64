"""Which of the two processes receives a flag of a command."""

import pytest

from mockube.apiserver.config.settings import SECTIONS as SERVER_SECTIONS
from mockube.cli import envtest, run, up
from mockube.cli.parsing import CommandParser
from mockube.cli.process_flags import UP_FLAGS, add_process_flags, split_flags
from mockube.cli.up import GROUPS
from mockube.component_base.flags import flags_of
from mockube.controller_manager.config.settings import SECTIONS as MANAGER_SECTIONS


@pytest.fixture
def parser():
    parser = CommandParser(prog="mockube up")
    add_process_flags(parser)
    return parser


@pytest.mark.parametrize(
    ("arguments", "server", "manager"),
    [
        pytest.param([], [], [], id="no flags"),
        pytest.param(["--event-ttl", "1m"], ["--event-ttl=1m"], [], id="flag of the server"),
        pytest.param(["--metrics-port=0"], [], ["--metrics-port=0"], id="flag of the manager"),
        pytest.param(["--secure-port=0"], ["--secure-port=0"], [], id="flag of both is passed to the server"),
        pytest.param(["-v", "4"], ["--v=4"], ["--v=4"], id="logging flag is passed to both"),
        pytest.param(["-v4"], ["--v=4"], ["--v=4"], id="level without a space"),
        pytest.param(["-v=4"], ["--v=4"], ["--v=4"], id="level after an equals sign"),
        pytest.param(["--v", "4"], ["--v=4"], ["--v=4"], id="long name"),
        pytest.param(["-v"], ["--v=2"], ["--v=2"], id="bare flag of the level"),
        pytest.param(
            ["-v", "--leader-elect"], ["--v=2"], ["--leader-elect=true", "--v=2"], id="flag after it"
        ),
        pytest.param(["--fsync"], ["--fsync=true"], [], id="a switch"),
        pytest.param(["--fsync=false"], ["--fsync=false"], [], id="boolean flag set to false"),
        pytest.param(
            ["--etcd-servers=http://a", "--etcd-servers=http://b"],
            ["--etcd-servers=http://a", "--etcd-servers=http://b"],
            [],
            id="several times",
        ),
        pytest.param(["--goaway-chance=0.1"], ["--goaway-chance=0.1"], [], id="upstream's, not ours"),
        pytest.param(["--cluster-name", "x"], [], ["--cluster-name=x"], id="the same of the manager"),
    ],
)
def test_flag_is_passed_to_process_that_has_it(parser, arguments, server, manager):
    assert split_flags(parser.read(arguments, {})) == (server, manager)


def test_port_of_up_is_that_of_the_server():
    parser = CommandParser(prog="mockube up")
    up.add_flags(parser)
    server, _ = split_flags(parser.read(["--port", "8443"], {"MOCKUBE_PORT": "tcp://10.0.0.1:443"}))
    assert [*server] == ["--secure-port=8443"]


def test_topics_are_groups_of_the_main_page():
    sections = (*SERVER_SECTIONS.values(), *MANAGER_SECTIONS.values())
    topics = {flag.topic for record in sections for flag in flags_of(record).values()}
    assert topics - {""} <= {*GROUPS}


@pytest.mark.parametrize("command", [up, run, envtest])
@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        pytest.param(["--nodes=7"], {}, id="short name"),
        pytest.param(["--simulate-nodes", "7"], {}, id="long name"),
        pytest.param([], {"MOCKUBE_NODES": "7"}, id="variable of the short name"),
        pytest.param([], {"MOCKUBE_SIMULATE_NODES": "7"}, id="variable of the long name"),
        pytest.param(["--nodes=7"], {"MOCKUBE_SIMULATE_NODES": "1"}, id="flag before variable"),
    ],
)
def test_number_of_nodes_has_two_names(command, arguments, environment):
    parser = CommandParser(prog="mockube")
    command.add_flags(parser)
    rest = [] if command is up else ["folder"]
    assert parser.read([*arguments, *rest], environment).simulate_nodes.count == 7


@pytest.mark.parametrize(
    ("arguments", "level", "command"),
    [
        pytest.param(["-v", "--", "make", "-v"], 2, ["make", "-v"], id="bare, before dashes"),
        pytest.param(["-v", "make", "-v", "3"], 2, ["make", "-v", "3"], id="bare, before a word"),
        pytest.param(["-v", "4", "make"], 4, ["make"], id="with its level"),
        pytest.param(["-v4", "--nodes", "1", "make", "-v"], 4, ["make", "-v"], id="joined, and another flag"),
        pytest.param(
            ["make", "--data_dir=x", "--nodes=9"], 0, ["make", "--data_dir=x", "--nodes=9"], id="none"
        ),
    ],
)
def test_flags_of_run_end_where_its_command_begins(arguments, level, command):
    options = options_of(run, *arguments)
    assert (options.v, options.command) == (level, ["--", *command])


def test_environment_variable_is_passed_as_flag(parser):
    assert split_flags(parser.read([], {"MOCKUBE_EVENT_TTL": "1m"})) == (["--event-ttl=1m"], [])


def options_of(command, *arguments):
    parser = CommandParser(prog="mockube")
    command.add_flags(parser)
    return parser.read(arguments, {})


def test_manager_of_a_run_has_the_minor_of_its_server():
    minor = "--kubernetes-version=1.31"
    assert minor in run.manager_flags(options_of(run, minor, "--", "true"))


def test_manager_of_a_run_has_the_flag_for_unknown_images():
    flag = "--unknown-images=fail"
    assert flag in run.manager_flags(options_of(run, flag, "--", "true"))


def test_manager_of_envtest_has_the_minor_of_its_server():
    minor = "--kubernetes-version=1.31"
    launchers = envtest.launchers(options_of(envtest, "--with-controllers", minor, "folder"))
    assert launchers["kube-apiserver"].count(minor) == 2


def test_every_flag_of_both_processes_can_be_given(parser):
    theirs = {
        name
        for sections in (SERVER_SECTIONS, MANAGER_SECTIONS)
        for record in sections.values()
        for name, flag in flags_of(record).items()
        if not flag.deprecated
    }
    known = {flag.lstrip("-").replace("-", "_") for flag in parser.flags()}
    assert theirs - UP_FLAGS - known == set()
