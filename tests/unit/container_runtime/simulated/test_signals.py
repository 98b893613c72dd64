"""Signals reach every process of a container, also from the commands of clients, and have the effects that Linux and shells give them."""

import pytest

from judges.differential.shell.shells import run_simulated
from mockube.container_runtime.pod_script import Script
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.live_containers import LiveContainers
from mockube.container_runtime.simulated.predictions import program_of_run
from mockube.kubelet.pod_lifecycle.containers import default_program
from tests.support.event_loop import yield_to_loop
from tests.support.images import IMAGES
from tests.support.running_containers import Cluster, shell


@pytest.mark.parametrize(
    ("kind", "script", "output", "errors"),
    [
        ("sh", "(sleep 1; pkill sleep) & sleep 50; echo $?", "143\n", "Terminated\n"),
        ("bash", "(sleep 1; pkill sleep) & sleep 50; echo $?", "143\n", "Terminated\n"),
        ("sh", "(sleep 1; pkill -INT sleep) & sleep 50; echo $?", "130\n", ""),
        (
            "bash",
            "(sleep 1; pkill -9 sleep) & sleep 50; echo $?",
            "137\n",
            "sh: line 1:     7 Killed                  sleep 50\n",
        ),
        (
            "sh",
            "(sleep 1; pkill -f '^timeout') & timeout 40 sleep 30; pgrep sleep; echo $?",
            "1\n",
            "Terminated\n",
        ),
        ("sh", "(sleep 1; pkill sleep) & x=$(sleep 50; echo in $?); echo $x", "in 143\n", "Terminated\n"),
        ("sh", "(sleep 1; kill $(pgrep -x sleep)) & sleep 50; echo $?", "143\n", "Terminated\n"),
        ("sh", "(sleep 1; pkill -0 sleep; pkill -CHLD sleep) & sleep 5; echo $?", "0\n", ""),
    ],
)
def test_signal_ends_the_program_for_which_a_shell_waits(kind, script, output, errors):
    result = run_simulated(script, kind)
    assert (result.output, result.errors) == (output, errors)


@pytest.mark.parametrize(
    ("kind", "script", "output", "errors"),
    [
        ("sh", "sleep 9 & kill -9 $!; wait $!; echo $?", "137\n", "Killed\n"),
        ("sh", "sleep 9 & kill -9 $!; sleep 1; wait $!; echo $?", "137\n", ""),
        ("bash", "sleep 9 & kill $!; wait $!; echo $?", "143\n", ""),
        ("sh", "sleep 2 & kill -CHLD $!; kill -CONT $!; wait $!; echo $?", "0\n", ""),
        (
            "sh",
            "(while :; do sleep 1; echo t; done) & kill -STOP $!; sleep 3; kill -9 $!; wait",
            "",
            "Killed\n",
        ),
    ],
)
def test_signal_to_a_job(kind, script, output, errors):
    result = run_simulated(script, kind)
    assert (result.output, result.errors) == (output, errors)


def test_process_that_was_stopped_goes_on():
    script = "(sleep 1; echo t) & kill -STOP $!; sleep 3; echo c; kill -CONT $!; wait"
    assert run_simulated(script).output == "c\nt\n"


@pytest.mark.parametrize(
    ("signal", "program", "code"), [("TERM", "sleep", 143), ("KILL", "sleep", 137), ("0", "sleep", None)]
)
async def test_client_ends_the_program_of_a_container(signal, program, code):
    cluster = Cluster(shell("sleep 1000; exit $?"))
    await cluster.advance(1)
    assert await cluster.exec("pkill", f"-{signal}", program) == (0, "")
    await cluster.advance(1)
    assert getattr(cluster.end(), "code", None) == code


async def test_client_signals_a_job_of_a_container():
    script = "(trap 'echo got; exit 3' USR1; while :; do sleep 1; done) & echo $! >/tmp/pid; wait $!; exit $?"
    cluster = Cluster(shell(script))
    await cluster.advance(2)
    assert await cluster.exec("sh", "-c", "kill -USR1 $(cat /tmp/pid)") == (0, "")
    await cluster.advance(2)
    assert await cluster.log() == ["got\n"]
    assert cluster.end().code == 3


async def test_client_ends_a_job_while_all_processes_sleep():
    cluster = Cluster(shell("sleep 1000 & wait $!; echo ended $?; sleep 1000"))
    await cluster.advance(2)
    await cluster.exec("sh", "-c", "kill -9 $(pgrep -x sleep)")
    await cluster.advance(1)
    assert (await cluster.log())[-1] == "ended 137\n"


@pytest.mark.parametrize("command", ["kill 1", "kill -9 1", "kill -9 $$$$", "kill -STOP 1", "pkill -9 sh"])
async def test_first_process_of_a_namespace_does_not_end_itself(command):
    cluster = Cluster(shell(f"{command}; echo alive; exit 5"), restartPolicy="Never")
    assert await cluster.log() == ["alive\n"]


async def test_first_process_handles_its_own_signal():
    cluster = Cluster(shell("trap 'echo t' TERM; kill 1; echo on"), restartPolicy="Never")
    assert await cluster.log() == ["t\n", "on\n"]


async def test_container_ends_itself_in_a_shared_namespace():
    cluster = Cluster(
        shell("echo $$$$; kill $$$$; echo no"),
        shell("sleep 9", "d"),
        restartPolicy="Never",
        shareProcessNamespace=True,
    )
    assert await cluster.log() == ["7\n"]


async def test_container_ends_the_process_of_another_one():
    sidecar = shell("until pgrep -x sleep; do sleep 1; done; pkill -x sleep; sleep 99", "side")
    cluster = Cluster(shell("sleep 1000; exit $?"), sidecar, shareProcessNamespace=True)
    for name in ("c", "side"):
        cluster.runtime.start_container(cluster.pod, name, 0)
    await cluster.advance(3)
    assert cluster.end().code == 143
    assert cluster.end("side") is None


@pytest.mark.parametrize(
    ("command", "is_live"),
    [
        ("kill -0 1", False),
        ("kill -TERM 1", True),
        ("k=kill; $k -TERM 1", True),
        ("pkill sleep", True),
        ("pkill app", False),
        ("echo kill 1", False),
        ("kill -l", False),
        ("t=tou; ${t}ch /tmp/x", True),
        ("echo touch >/dev/null", False),
    ],
)
def test_container_whose_hook_changes_something_runs_in_real_time(command, is_live):
    hook = {"preStop": {"exec": {"command": ["sh", "-c", command]}}}
    container = shell("trap 'exit 3' TERM; while :; do sleep 1; done", lifecycle=hook)
    pod = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [container]}}
    assert bool(LiveContainers(IMAGES, Records()).command(pod, container)) is is_live


def test_container_whose_server_is_not_simulated_runs():
    container = {
        "name": "c",
        "image": "team/nginx:1",
        "command": ["nginx", "-c", "/etc/nginx/own.conf"],
        "volumeMounts": [{"name": "v", "mountPath": "/etc/nginx"}],
    }
    tree = Cluster(container, volumes=[{"name": "v", "configMap": {"name": "x"}}]).pod
    assert default_program(tree, "c").seconds is None
    assert program_of_run(IMAGES, tree, container, Script())() is None


@pytest.mark.thorough
async def test_container_runs_at_once_whose_command_works_on():
    cluster = Cluster(shell("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; wget -V; exit 3"))
    cluster.runtime.start_container(cluster.pod, "c", 0)
    while cluster.runtime.states(cluster.pod)["c"].started is None:
        await yield_to_loop()
    assert not cluster.runtime.run_of(cluster.pod, "c").has_paused.is_set()


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("sleep 1h", ["sleep 1h"]),
        ("sleep 1h; true", ["sh -c sleep 1h; true", "sleep 1h"]),
        ("echo $(hostname) >/dev/null && sleep 1h", None),
    ],
)
async def test_shell_becomes_the_one_program_of_its_script(script, shown):
    cluster = Cluster(shell(script))
    _, output = await cluster.exec("ps")
    listed = [line[21:].strip() for line in output.splitlines()[1:] if not line.endswith(" ps")]
    assert listed == (shown or [f"sh -c {script}", "sleep 1h"])
    first = (await cluster.exec("cat", "/proc/1/cmdline"))[1].replace("\0", " ").strip()
    assert first == listed[0]
