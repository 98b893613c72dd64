"""`mockube up` in the foreground, and the other commands on the running cluster."""

import os
import shlex
import signal

import orjson
import pytest

from mockube.apimachinery.schema.minors import NEWEST
from tests.support.processes.commands import Mockube, ask, wait_for, wait_gone, wait_line
from tests.support.processes.process import ApiServerProcess

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def mockube(tmp_path):
    commands = Mockube(tmp_path)
    yield commands
    commands.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One running cluster for the tests that do not change it, or restore it."""
    commands = Mockube(tmp_path_factory.mktemp("home"))
    process = commands.start("up", "--secure-port=0", "--simulate-nodes=1")
    commands.lines = [process.stdout.readline()]
    while "Ctrl+C stops it" not in commands.lines[-1]:
        commands.lines.append(process.stdout.readline())
    commands.process = process
    yield commands
    commands.close()


def kubeconfig_of(commands):
    (line,) = (line for line in commands.lines if "export KUBECONFIG=" in line)
    return shlex.split(line)[1].partition("=")[2]


def test_up_prints_kubeconfig_and_kubectl_commands(running):
    assert "is ready, with 1 simulated node and a control plane." in running.lines[0]
    assert kubeconfig_of(running) == str(running.folder().kubeconfig)
    assert sum(line.startswith("  mockube kubectl ") for line in running.lines) == 3
    assert not (running.home / ".kube").exists()


def test_kubeconfig_command_prints_working_kubeconfig(running):
    kubeconfig = running.folder().kubeconfig
    assert running.run("kubeconfig").stdout == kubeconfig.read_text()
    assert running.run("kubeconfig", "--path").stdout == f"{kubeconfig}\n"
    status, nodes = ask(kubeconfig, "GET", "/api/v1/nodes")
    assert status == 200
    assert [node["metadata"]["name"] for node in nodes["items"]] == ["control-plane-1", "node-1"]


def test_status_and_list_show_running_cluster(running):
    shown = running.run("status", "-o", "json")
    tree = orjson.loads(shown.stdout)
    assert (shown.returncode, tree["healthy"], tree["nodesReady"]) == (0, True, 2)
    assert running.run("list", "-o", "name").stdout == "default\n"
    assert "default   running   https://127.0.0.1:" in running.run("list").stdout


def test_second_cluster_of_same_name_is_refused_without_reuse(running):
    refused = running.run("up", "--secure-port=0")
    assert refused.returncode == 1
    assert refused.stderr.startswith('mockube: "default" is already running, as process ')
    content = running.run("up", "--exist-ok", "--write-kubeconfig=copy")
    assert content.returncode == 0
    assert f"export KUBECONFIG={kubeconfig_of(running)}" in content.stdout
    assert (running.home / "copy").read_text() == running.folder().kubeconfig.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--profile=minimal"], "--profile is kubeadm and not minimal", id="profile"),
        pytest.param(
            ["--kubernetes-version=1.33"], f"--kubernetes-version is {NEWEST} and not 1.33", id="minor"
        ),
        pytest.param(["--nodes=2"], "--nodes is 1 and not 2 (`mockube nodes 2` changes it)", id="nodes"),
        pytest.param(
            ["--nodes=cpu=4:1"],
            "--nodes is 1 and not cpu=4:1 (`mockube nodes cpu=4:1` changes it)",
            id="pools",
        ),
        pytest.param(["--packs="], "--packs is kruise and not empty", id="packs"),
        pytest.param(["--keep"], "--keep is not set: the store is memory", id="store"),
        pytest.param(["--event-ttl=5m"], "--event-ttl is not set", id="flag of a process"),
        pytest.param(["--secure-port=1"], "--secure-port is 0 and not 1", id="port"),
    ],
)
def test_running_cluster_with_other_flags_is_not_used(running, arguments, says):
    refused = running.run("up", "--exist-ok", *arguments)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(
        f'mockube: "default" runs with other flags: {says}. Leave these flags out'
    )


def test_running_cluster_with_the_same_flags_is_used(running):
    flags = ("--secure-port=0", "--event-ttl=1h", "--bind-address=127.0.0.1", "--packs=kruise")
    assert running.run("up", "--exist-ok", *flags, MOCKUBE_NODES="1").returncode == 0


def test_number_of_nodes_is_the_one_of_the_server(running):
    try:
        assert running.run("nodes", "2").returncode == 0
        assert "with 2 simulated nodes" in running.run("up", "--exist-ok", "--nodes=2").stdout
        assert running.run("list").stdout.splitlines()[1].split()[3] == "3"
    finally:
        assert running.run("nodes", "1").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--profile=kind"], "--profile"),
        (["--profile=minimal", "--control-planes=3"], "--control-planes needs --profile=kubeadm"),
        (["--control-planes=0"], "0 is not a number from 1 to 15"),
        (["--control-planes=many"], "--control-planes"),
        (["--container-runtime=process"], "--container-runtime=process needs --images"),
        (["--service-cluster-ip-range=10.0.0.0/29"], "10.0.0.0/29 has no room for the address of kube-dns"),
    ],
)
def test_flags_that_do_not_fit_are_refused(running, arguments, says):
    refused = running.run("up", "--name=other", *arguments)
    assert (refused.returncode, says in refused.stderr) == (2, True)


def test_port_conflict_names_cluster_that_uses_port(running):
    port = running.record().url.rpartition(":")[2]
    refused = running.run("up", "--name=other", f"--secure-port={port}")
    assert refused.returncode == 1
    assert f'port {port} is in use by the cluster "default"' in refused.stderr
    assert "--secure-port=0" in refused.stderr


def test_logs_can_be_limited_to_process_tail_and_time(running):
    assert "Serving securely on" in running.run("logs", "apiserver").stdout
    together = running.run("logs").stdout.splitlines()
    assert {line.partition(":")[0] for line in together} == {"apiserver", "controller-manager"}
    [last] = running.run("logs", "--tail=1").stdout.splitlines()
    assert (
        last in running.run("logs").stdout.splitlines()[len(together) - 1 :]
    )  # The processes may have written more.


def test_killed_manager_is_restarted(running):
    killed = running.record().components["controller-manager"]
    os.kill(killed.pid, signal.SIGKILL)
    line = wait_line(running.process.stderr, "exited with code")
    assert line == "mockube: the controller-manager exited with code 137; it is restarted in 1 s\n"
    wait_for(lambda: running.record().components["controller-manager"].restarts > killed.restarts)
    wait_for(lambda: running.record().components["controller-manager"].pid)
    wait_for(lambda: running.run("status").returncode == 0)


def test_manager_that_stands_still_is_a_problem(running):
    manager = running.record().components["controller-manager"].pid
    os.kill(manager, signal.SIGSTOP)
    try:
        shown = running.run("status")
    finally:
        os.kill(manager, signal.SIGCONT)
    assert shown.returncode == 5
    assert (
        "running, unhealthy\nproblem      the controller-manager does not respond: timed out\n"
        in shown.stdout
    )
    wait_for(lambda: running.run("status").returncode == 0)


COMPONENTS = "/api/v1/componentstatuses"


def components_of(running):
    """Return whether each component is healthy, and its message."""
    _, statuses = ask(running.folder().kubeconfig, "GET", COMPONENTS)
    conditions = {item["metadata"]["name"]: item["conditions"][0] for item in statuses["items"]}
    return {name: (condition["status"], condition["message"]) for name, condition in conditions.items()}


def test_component_statuses_are_healthy_while_components_run(running):
    healthy = ("True", "ok")
    expected = {"controller-manager": healthy, "scheduler": healthy, "etcd-0": healthy}
    wait_for(lambda: components_of(running) == expected)
    os.kill(running.process.pid, signal.SIGSTOP)  # so that the manager is not restarted
    try:
        os.kill(running.record().components["controller-manager"].pid, signal.SIGKILL)
        wait_for(lambda: "connect: connection refused" in components_of(running)["scheduler"][1])
        assert components_of(running)["controller-manager"][0] == "False"
        assert components_of(running)["etcd-0"] == healthy
    finally:
        os.kill(running.process.pid, signal.SIGCONT)
    wait_for(lambda: components_of(running) == expected)


def test_reset_empties_store_and_keeps_cluster(running):
    kubeconfig = running.folder().kubeconfig
    before = kubeconfig.read_text()
    assert ask(kubeconfig, "POST", CONFIG_MAPS, CONFIG_MAP)[0] == 201
    assert running.run("reset").returncode == 0
    assert ask(kubeconfig, "GET", f"{CONFIG_MAPS}/mine")[0] == 404
    for kept in ("server:", "certificate-authority-data:", "client-certificate-data:"):
        assert [line for line in before.splitlines() if kept in line] == [
            line for line in kubeconfig.read_text().splitlines() if kept in line
        ]


def test_restore_waits_for_what_snapshot_lacks_and_pods_need(mockube, tmp_path):
    """The snapshot is that of a server without controllers."""
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    with ApiServerProcess(tmp_path) as server:
        saved = mockube.run("snapshot", "save", "without.gz", "--kubeconfig", str(server.kubeconfig))
    assert saved.returncode == 0, saved.stderr
    process = mockube.start("up", "--secure-port=0", "--simulate-nodes=1")
    wait_line(process.stdout, "Ctrl+C stops it")
    kubeconfig = mockube.folder().kubeconfig
    manager = mockube.record().components["controller-manager"].pid
    os.kill(manager, signal.SIGSTOP)
    try:
        restoring = mockube.start("snapshot", "restore", "--replace", "without.gz")
        wait_for(lambda: ask(kubeconfig, "GET", account)[0] == 404)
        assert restoring.poll() is None
    finally:
        os.kill(manager, signal.SIGCONT)
    printed, errors = restoring.communicate()
    assert (restoring.returncode, "objects restored" in printed) == (0, True), errors
    assert ask(kubeconfig, "GET", account)[0] == 200


def test_ctrl_c_stops_manager_before_server(mockube):
    process = mockube.start("up", "--secure-port=0", "--simulate-nodes=1")
    wait_line(process.stdout, "Ctrl+C stops it")
    processes, following = mockube.processes(), mockube.start("logs", "-f")
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0
    log, _ = following.communicate()
    assert following.returncode == 0
    ends = [line.partition(":")[0] for line in log.splitlines() if line.endswith("] Stopped")]
    assert ends == ["controller-manager", "apiserver"]
    wait_gone(processes)
    assert mockube.run("status").returncode == 3


def test_killed_up_leaves_no_processes(mockube):
    process = mockube.start("up", "--secure-port=0", "--simulate-nodes=1")
    wait_line(process.stdout, "Ctrl+C stops it")
    processes = mockube.processes()
    process.kill()
    wait_gone(processes)
    shown = mockube.run("status")
    assert shown.returncode == 5
    assert "was killed" in shown.stdout
    assert mockube.run("down").returncode == 0
    assert mockube.run("status").returncode == 3


def test_up_reports_why_server_cannot_start(mockube, tmp_path):
    (tmp_path / "file").touch()
    answer = mockube.run("up", "--secure-port=0", f"--data-dir={tmp_path / 'file'}")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "mockube: the apiserver exited with code 1: " in answer.stderr
    assert "Not a directory" in answer.stderr


def test_manager_with_invalid_flags_is_not_restarted(mockube):
    answer = mockube.run("up", "--secure-port=0", "--leader-elect-lease-duration=10s")
    assert (answer.returncode, answer.stdout) == (2, "")
    problem = "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline"
    assert f"the controller-manager exited with code 2: {problem}" in answer.stderr


def test_unknown_controller_is_refused_before_the_processes_start(mockube):
    answer = mockube.run("up", "--secure-port=0", "--controllers=*,-scheduler")
    assert (answer.returncode, answer.stdout) == (2, "")
    problem = (
        '--controllers: "scheduler" is not in the list of known controllers: did you mean "kube-scheduler"?'
    )
    assert answer.stderr == f"mockube: {problem}\n"
