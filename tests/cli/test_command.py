"""The `mockube` command and the two server processes: output, exit codes and usage errors."""

import argparse
import os
import re
import subprocess
import sys

import orjson
import pytest

from mockube.cli.completion import SHELLS
from mockube.cli.main import COMMANDS, main
from mockube.cli.parsing import CommandParser
from mockube.clusters.named_cluster import cluster_folder
from tests.architecture.source import settings
from tests.support.processes.commands import exit_code
from tools.packages import ROOT


def run(module, *arguments):
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_version_is_that_of_the_project():
    answer = run("mockube", "version")
    assert (answer.returncode, answer.stdout, answer.stderr) == (
        0,
        f"{settings()['project']['version']}\n",
        "",
    )


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as exited:
        main(["--help"])
    assert exited.value.code == 0
    shown = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"\n  {name} " in shown
        assert command.summary.split()[0] in shown


def test_command_line_without_command_prints_the_first_commands(capsys):
    assert main([]) == 0
    shown, complaints = capsys.readouterr()
    assert complaints == ""
    names = re.findall(r"^  mockube (\w+)", shown, re.MULTILINE)
    assert names == ["demo", "up", "kubectl", "run", "down"]
    assert "`mockube --help` lists all commands" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(
            ["upp"], 'unknown command "upp": did you mean up? (see `mockube --help`)', id="mistyped command"
        ),
        pytest.param(
            ["--bogus", "up"],
            "unknown flag --bogus before the command (see `mockube --help`)",
            id="unknown flag",
        ),
        pytest.param(
            ["--nodes"],
            "unknown flag --nodes before the command: it is a flag of a command, as in `mockube up --nodes` (see `mockube --help`)",
            id="flag of a command without the command",
        ),
        pytest.param(
            ["--nmae=x", "up"],
            "unknown flag --nmae before the command: did you mean --name? (see `mockube --help`)",
            id="mistyped flag before the command",
        ),
        pytest.param(
            ["demo", "now"], 'unexpected argument "now" (see `mockube demo --help`)', id="unexpected argument"
        ),
        pytest.param(
            ["up", "--secure-prot=1"],
            "unknown flag --secure-prot: did you mean --secure-port? (see `mockube up --help`)",
            id="mistyped API server flag",
        ),
        pytest.param(
            ["up", "--concurrent-gc-sync=1"],
            "unknown flag --concurrent-gc-sync: did you mean --concurrent-gc-syncs? (see `mockube up --help`)",
            id="mistyped controller manager flag",
        ),
        pytest.param(
            ["up", "--event-ttl=soon"],
            '--event-ttl: time: invalid duration "soon" (see `mockube up --help`)',
            id="invalid value",
        ),
        pytest.param(
            ["up", "--help=apiservr"],
            '-h/--help: "apiservr" is not one of all, apiserver, controller-manager: did you mean apiserver?'
            " (see `mockube up --help`)",
            id="mistyped page of the help",
        ),
        pytest.param(["--name=blue"], "no command (see `mockube --help`)", id="flag without a command"),
        pytest.param(
            ["-n", "blue", "status"],
            "unknown flag -n before the command: a cluster is chosen with --name (see `mockube --help`)",
            id="short flag for the cluster before the command",
        ),
        pytest.param(
            ["rewind", "-n", "blue"],
            "unknown flag -n: a cluster is chosen with --name (see `mockube rewind --help`)",
            id="short flag for the cluster",
        ),
        pytest.param(
            ["fault", "list", "-n", "blue"],
            "unknown flag -n: a cluster is chosen with --name (see `mockube fault --help`)",
            id="short flag for the cluster in one of several subcommands",
        ),
        pytest.param(
            ["up", "--nodes=1000000"],
            "--nodes/--simulate-nodes: at most 15000 nodes can have addresses (see `mockube up --help`)",
            id="too many nodes",
        ),
        pytest.param(
            ["up", "--wait=foo"],
            '--wait: "foo" is none of server, nodes, and no time such as 30s (see `mockube up --help`)',
            id="unknown condition",
        ),
        pytest.param(
            ["up", "--nodes=gpus=8:2"],
            '--nodes/--simulate-nodes: unknown key "gpus": did you mean "gpu"? (see `mockube up --help`)',
            id="unknown key of a pool",
        ),
        pytest.param(
            ["up", "--nodes=cpu=4:3", "--node-labels=disk=ssd"],
            "--node-labels: pools have capacity, zones and labels of their own: write them there",
            id="deprecated flag and pools",
        ),
        pytest.param(
            ["nodes", "cpu=4:3", "--zones=a", "--labels=disk=ssd"],
            "--zones, --labels: pools have capacity, zones and labels of their own: write them there",
            id="deprecated flags and new pools",
        ),
        pytest.param(
            ["nodes", "--zones=a"],
            "--zones: give the new number of nodes, too",
            id="zones of no nodes",
        ),
        pytest.param(["run"], "no command: use `mockube run -- CMD ...`", id="no command to run"),
        pytest.param(
            ["status", "--name=No/where"],
            '"No/where" is not a valid cluster name: use lower-case letters, digits and "-" between them, at most 40',
            id="invalid cluster name",
        ),
    ],
)
def test_invalid_command_line_is_refused_in_one_line(arguments, says, capsys):
    assert exit_code(arguments) == 2
    assert capsys.readouterr() == ("", f"mockube: {says}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["status"], id="status"),
        pytest.param(["down"], id="down"),
        pytest.param(["logs"], id="logs"),
        pytest.param(["reset"], id="reset"),
        pytest.param(["kubeconfig"], id="kubeconfig"),
        pytest.param(["--name=nowhere", "status"], id="name before the command"),
        pytest.param(["status", "--name=nowhere"], id="name after the command"),
    ],
)
def test_cluster_that_does_not_exist_is_not_found(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert exit_code(arguments) == 3
    shown, complaints = capsys.readouterr()
    name = "nowhere" if "--name=nowhere" in arguments else "default"
    assert shown == ""
    assert complaints.startswith(f'mockube: there is no cluster "{name}": `mockube up')


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["import", "nofile"], 1, "nofile: No such file or directory"),
        (["nodes", "2", "--kubeconfig=nofile"], 3, "nofile: No such file or directory"),
        (["kubectl", "--kubeconfig=nofile", "get", "pods"], 3, "nofile: No such file or directory"),
        (["envtest", "file"], 2, "file is a file: name a folder"),
        (["run", "no-such-program"], 127, "no-such-program: command not found"),
        (
            ["run", "web", "--image=nginx"],
            127,
            "web: command not found: for the run of kubectl, type `mockube kubectl run web --image=nginx`",
        ),
        (
            ["up", "--bind-address=192.0.2.1", "--secure-port=0"],
            1,
            "192.0.2.1 is not an address of this machine: use another --bind-address, such as 127.0.0.1",
        ),
    ],
)
def test_wrong_value_is_reported_in_one_line(arguments, code, says, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert exit_code(arguments) == code
    assert capsys.readouterr() == ("", f"mockube: {says}\n")


def test_reset_of_stopped_kept_cluster_empties_store(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = cluster_folder("default", {"XDG_DATA_HOME": str(tmp_path)})
    folder.prepare()
    folder.data.mkdir()
    (folder.data / "etcd").touch()
    assert exit_code(["reset"]) == 0
    assert capsys.readouterr() == ("", 'mockube: "default" is empty and stopped\n')
    assert list(folder.data.iterdir()) == []


def test_kubeconfig_is_merged_into_kubectls_default_file(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    folder = cluster_folder("side", {"XDG_DATA_HOME": str(tmp_path)})
    folder.prepare()
    assert exit_code(["kubeconfig", "--name=side"]) == 3
    folder.kubeconfig.write_text("{clusters: [], users: [], contexts: [{name: mockube-side}]}")
    assert exit_code(["kubeconfig", "--name=side", "--merge"]) == 0
    assert "current-context: mockube-side" in (tmp_path / "first").read_text()
    assert not (tmp_path / "second").exists()


def test_unusable_folder_is_reported_without_traceback(capsys, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    assert exit_code(["up", "--secure-port=0"]) == 1
    shown, complaints = capsys.readouterr()
    assert shown == ""
    assert re.fullmatch(
        r"mockube: .*: Not a directory \(run `mockube doctor` to check this machine\)\n", complaints
    )


def test_closed_output_pipe_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout:
        answer = subprocess.run(
            [sys.executable, "-m", "mockube", "demo"],
            cwd=ROOT,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert (answer.returncode, answer.stderr) == (141, b"")


def test_manager_without_server_address_fails_with_message():
    answer = run("mockube.controller_manager")
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "no API server" in answer.stderr


def test_short_flag_n_is_the_namespace_in_every_command():
    actions = [action for command in COMMANDS.values() for action in all_actions(command)]
    short = [action.option_strings for action in actions if "-n" in action.option_strings]
    assert ["-n", "--namespace"] in short
    assert all(spellings == ["-n", "--namespace"] for spellings in short)
    assert all("-n" in action.option_strings for action in actions if "--namespace" in action.option_strings)


def all_actions(command):
    """Yield the flags and arguments of a command and of its subcommands."""
    parsers = [CommandParser(prog=command.name)]
    command.add_flags(parsers[0])
    for parser in parsers:
        parsers += parser._command_parsers()
        yield from (action for action in parser._actions if action.help != argparse.SUPPRESS)


@pytest.mark.parametrize("command", ["status", "down", "nodes"])
def test_short_flag_for_the_cluster_is_deprecated_where_a_release_had_it(
    command, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert exit_code([command, "-n", "nowhere"]) == 3
    reported, problem = capsys.readouterr().err.splitlines()
    assert reported == "Flag -n has been deprecated, use --name=nowhere instead"
    assert 'there is no cluster "nowhere"' in problem


@pytest.mark.parametrize("arguments", [["up", "--help"], ["up", "-h"], ["help", "up"]])
def test_help_of_up_is_one_screen(arguments, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert exit_code(arguments) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 40
    assert "-v, --v[=LEVEL]" in shown
    assert "--concurrent-gc-syncs" not in shown


@pytest.mark.parametrize(
    ("page", "flags", "others"),
    [
        ("apiserver", {"--secure-port", "--fsync", "--v"}, {"--concurrent-gc-syncs", "--detach"}),
        ("controller-manager", {"--concurrent-gc-syncs", "--stages", "--v"}, {"--fsync", "--detach"}),
        ("all", {"--secure-port", "--fsync", "--concurrent-gc-syncs", "--detach", "--v"}, set()),
    ],
)
def test_page_of_the_help_lists_the_flags_of_its_process(page, flags, others, capsys):
    assert exit_code(["up", f"--help={page}"]) == 0
    shown = set(re.findall(r"--[a-z][-a-z]*", capsys.readouterr().out))
    assert flags <= shown
    assert others.isdisjoint(shown)


def test_no_flag_is_listed_twice_in_the_whole_help(capsys):
    assert exit_code(["up", "--help=all"]) == 0
    listed = re.findall(r"^  (?:-\w, )?(--[-a-z0-9]+)", capsys.readouterr().out, re.MULTILINE)
    assert len(listed) == len(set(listed)) > 150


def test_version_flag_of_up_prints_the_version_and_starts_nothing(capsys):
    assert exit_code(["up", "--version"]) == 0
    assert re.fullmatch(r"Kubernetes v1\.\d+\.\d+\n", capsys.readouterr().out)


def test_version_as_json_has_mockube_and_kubernetes(capsys):
    assert main(["version", "-o", "json"]) == 0
    versions = orjson.loads(capsys.readouterr().out)
    assert versions["mockube"] == settings()["project"]["version"]
    assert versions["kubernetes"].startswith("v1.")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_can_complete_every_command(shell, capsys):
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    for name in COMMANDS:
        assert name in shown
    assert "write-kubeconfig" in shown


def test_bash_completion_script_has_valid_syntax():
    script = run("mockube", "completion", "bash").stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_up_starts_server_without_importing_its_kinds():
    heavy = ["mockube.apiserver.kinds.built_in_kinds", "mockube.apiserver.admission.chain"]
    code = f"import sys, mockube.cli.up; sys.exit(str([name for name in {heavy} if name in sys.modules]))"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", [["version"], ["list"], ["doctor"], ["completion", "bash"]])
def test_command_imports_only_modules_that_it_needs(command, tmp_path):
    heavy = [
        "aiohttp",
        "uvloop",
        "mockube.apiserver.app",
        "mockube.controller_manager.app",
    ]
    code = (
        f"import sys, mockube.cli.main as m; m.main({command}); "
        f"sys.exit(str([name for name in {heavy} if name in sys.modules]))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stderr.splitlines()[-1] == "[]"
