"""A container goes on in real time once a client runs a command in it, and what the client does has its effect."""

import asyncio

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.container_runtime.records import Records
from mockube.container_runtime.runtime import CommandFailed
from mockube.container_runtime.simulated.live_containers import LiveContainers
from tests.support.event_loop import yield_to_loop
from tests.support.images import IMAGES
from tests.support.running_containers import Cluster, read, shell

TICKS = "n=0; while true; do n=$((n+1)); echo tick $n; sleep 1; done"


async def test_container_without_a_client_is_computed():
    cluster = Cluster(shell(TICKS))
    await cluster.advance(3)
    assert cluster.runtime.states(cluster.pod) == {}
    assert not cluster.runtime.may_change(cluster.pod)
    assert await cluster.log() == ["tick 1\n", "tick 2\n", "tick 3\n", "tick 4\n"]


async def test_command_that_waits_for_a_file_sees_that_of_a_client():
    cluster = Cluster(
        shell("echo begin; until [ -f /tmp/go ]; do sleep 1; done; cat /tmp/go; exit 3"),
        restartPolicy="Never",
    )
    await cluster.advance(5)
    assert (await cluster.exec("sh", "-c", "echo hi > /tmp/go"))[0] == 0
    await cluster.advance(2)
    assert cluster.end().code == 3
    assert await cluster.log() == ["begin\n", "hi\n"]


@pytest.mark.thorough
async def test_run_goes_on_where_it_was():
    cluster = Cluster(shell(f"echo $$ > /tmp/pid; {TICKS}"))
    await cluster.advance(3)
    await cluster.exec("ls")
    before = await cluster.log()
    await cluster.advance(2)
    assert before == [f"tick {number}\n" for number in range(1, 5)]
    assert await cluster.log() == [f"tick {number}\n" for number in range(1, 7)]
    state = cluster.runtime.states(cluster.pod)["c"]
    assert (state.restarts, format_time(state.started), state.exit) == (0, cluster.started, None)


async def test_command_that_has_ended_runs_once():
    """The kubelet may notice its end later than clients come."""
    cluster = Cluster(shell("cat /tmp/log; exec 3>>/tmp/log; echo three >&3 | cat"), restartPolicy="Never")
    await cluster.advance(1)
    answers = [await cluster.exec("cat", "/tmp/log") for _ in range(3)]
    assert answers == [(0, "three\n")] * 3
    assert await cluster.log() == ["cat: can't open '/tmp/log': No such file or directory\n"]


async def test_rest_of_a_sleep_is_slept():
    cluster = Cluster(shell("sleep 10; echo done; sleep 100"))
    await cluster.advance(4)
    await cluster.exec("ls")
    await cluster.advance(5)
    assert await cluster.log() == []
    await cluster.advance(2)
    assert await cluster.log() == ["done\n"]


async def test_line_without_an_end_is_not_lost():
    cluster = Cluster(shell("printf half; sleep 5; echo ' a line'; sleep 100"))
    await cluster.advance(1)
    await cluster.exec("ls")
    await cluster.advance(6)
    assert await cluster.log() == ["half a line\n"]


@pytest.mark.thorough
async def test_log_that_is_followed_has_each_line_once():
    cluster = Cluster(shell(TICKS))
    await cluster.advance(2)
    source = await cluster.log_source()
    lines = read(source, cluster.clock.now())
    await cluster.exec("touch", "/tmp/x")
    await cluster.advance(2)
    lines += read(source, cluster.clock.now())
    source.close()
    assert lines == [f"tick {number}\n" for number in range(1, 6)]


@pytest.mark.thorough
async def test_clients_at_the_same_time_join_one_run():
    cluster = Cluster(shell(TICKS))
    await cluster.advance(2)
    await asyncio.gather(*(cluster.exec("touch", f"/tmp/{number}") for number in range(5)))
    await cluster.advance(1)
    assert (await cluster.log())[-2:] == ["tick 3\n", "tick 4\n"]


@pytest.mark.parametrize(
    ("script", "signal", "code"),
    [
        ("trap 'exit 7' TERM; while true; do sleep 1; done", "TERM", 7),
        ("trap 'exit 7' TERM; while true; do sleep 1; done", "KILL", None),
        ("while true; do sleep 1; done", "TERM", None),
    ],
)
async def test_first_process_gets_the_signals_that_it_handles(script, signal, code):
    cluster = Cluster(shell(script))
    await cluster.advance(2)
    assert await cluster.exec("kill", f"-{signal}", "1") == (0, "")
    await cluster.advance(2)
    assert getattr(cluster.end(), "code", None) == code


@pytest.mark.parametrize(("signal", "code"), [("TERM", 143), ("KILL", 137)])
async def test_first_process_of_another_container_has_no_protection(signal, code):
    cluster = Cluster(
        shell("while true; do sleep 1; done"), shell("sleep 1000", "other"), shareProcessNamespace=True
    )
    await cluster.advance(2)
    assert await cluster.exec("kill", f"-{signal}", "14") == (0, "")
    await cluster.advance(1)
    assert cluster.end("other").code == code
    assert cluster.end() is None


async def test_server_ends_at_a_signal():
    cluster = Cluster({"name": "c", "image": "nginx"})
    assert await cluster.exec("sh", "-c", "kill -HUP 1") == (0, "")
    assert cluster.runtime.kills(cluster.pod) == {}
    assert await cluster.exec("sh", "-c", "kill 1") == (0, "")
    kill = cluster.runtime.kills(cluster.pod)["c"]
    assert (kill.restarts, kill.code, kill.reason) == (0, 0, "")


async def test_server_whose_probe_is_a_command_has_its_log():
    probe = {"exec": {"command": ["redis-cli", "ping"]}}
    cluster = Cluster({"name": "c", "image": "redis:7", "readinessProbe": probe})
    await cluster.advance(2)
    assert "Ready to accept connections" in (await cluster.log())[-1]


async def test_container_has_no_process_of_that_number():
    cluster = Cluster(shell("sleep 1000"))
    assert await cluster.exec("sh", "-c", "kill 77") == (1, "sh: can't kill pid 77: No such process\n")


def mounting(script, name, path="/d"):
    return shell(script, name, volumeMounts=[{"name": "v", "mountPath": path}])


def runs_live(*containers):
    pod = {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": list(containers), "volumes": [{"name": "v", "emptyDir": {}}]},
    }
    live = LiveContainers(IMAGES, Records())
    return [bool(live.command(pod, container)) for container in containers]


@pytest.mark.thorough
def test_containers_that_share_files_run_in_real_time():
    writer = mounting("while true; do date >> /d/log; sleep 1; done", "w")
    assert runs_live(writer, mounting("tail -f /data/log", "r", "/data")) == [True, True]
    assert runs_live(writer, mounting("sleep 5", "r")) == [True, False]
    assert runs_live(writer) == [False]
    server = {
        "name": "s",
        "image": "nginx",
        "volumeMounts": [{"name": "v", "mountPath": "/usr/share/nginx/html"}],
    }
    assert runs_live(writer, server) == [True, False]
    # What a program that is not simulated writes is not there.
    unknown = {"name": "app", "image": "example.org/app", "volumeMounts": [{"name": "v", "mountPath": "/d"}]}
    assert runs_live(unknown, mounting("tail -f /d/log", "r")) == [False, False]


def test_container_whose_hook_writes_files_runs_in_real_time():
    def hook(script):
        return {"postStart": {"exec": {"command": ["sh", "-c", script]}}}

    waits = "until [ -f /tmp/ready ]; do sleep 1; done"
    assert runs_live(shell(waits, lifecycle=hook("touch /tmp/ready"))) == [True]
    assert runs_live(shell(waits, lifecycle=hook("echo hi >/dev/null 2>&1"))) == [False]


async def test_command_that_follows_a_file_sees_what_others_append():
    cluster = Cluster(shell("echo first > /tmp/f; tail -f /tmp/f"))
    await cluster.advance(3)
    await cluster.exec("sh", "-c", "echo second >> /tmp/f")
    await cluster.advance(2)
    await cluster.exec("sh", "-c", "echo third >> /tmp/f")
    await cluster.advance(2)
    assert await cluster.log() == ["first\n", "second\n", "third\n"]
    assert cluster.end() is None


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("script", "is_live"),
    [
        ("echo hi; sleep 5; exit 2", False),
        ("while true; do date; sleep 1; done", False),
        ("n=0; while true; do n=$((n+1)); sleep 1; done", False),
        ("touch /tmp/f; until [ -f /tmp/g ]; do sleep 1; done", False),
        ("tail -f /dev/null", False),
        # The files of the run-time, and what programs show of it, are not there in advance.
        ("grep -q root /etc/passwd || exit 3", True),
        ("[ $(cat /sys/fs/cgroup/memory.max) -gt 0 ]", True),
        ("ls /", True),
        ("[ $(nproc) = 4 ]", True),
        # The accounts of an image are known.
        ("[ $(whoami) = www-data ]", False),
        ("chown www-data /tmp", False),
        # It is not known whether it ends.
        ("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; exit 3", True),
    ],
)
def test_containers_whose_ends_are_not_certain_run_in_real_time(script, is_live):
    assert runs_live(shell(script)) == [is_live]


def test_container_whose_program_is_not_simulated_does_not_run_in_real_time():
    assert runs_live(shell("grep -q root /etc/passwd; /app/server", image="example.org/app")) == [False]


@pytest.mark.thorough
async def test_long_loop_ends():
    cluster = Cluster(shell("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; exit 3"), restartPolicy="Never")
    cluster.runtime.start_container(cluster.pod, "c", 0)
    while cluster.end() is None:
        cluster.clock.advance(0.1)
        await yield_to_loop()
    assert cluster.end().code == 3


async def test_client_sees_processes_of_command_and_not_its_own():
    cluster = Cluster(shell("sleep 100 & wait"), shell("while :; do sleep 9; done", "d"))
    assert await cluster.exec("pgrep", "-f", "zzz") == (1, "")
    assert (await cluster.exec("pgrep", "-x", "sleep"))[0] == 0
    assert (await cluster.exec("pidof", "sleep", container="d"))[0] == 0
    assert "sleep 100" in (await cluster.exec("ps"))[1]


async def test_program_of_image_that_is_not_simulated_is_no_missing_one():
    cluster = Cluster({"name": "c", "image": "nginx:1.25"})
    for program, problem in (
        ("openssl", 'program "openssl" of its image is not simulated'),
        ("nope", "nope"),
    ):
        with pytest.raises(CommandFailed, match=problem):
            await cluster.exec(program, "-v")


@pytest.mark.thorough
async def test_command_of_a_client_follows_what_the_container_writes():
    cluster = Cluster(shell("while true; do sleep 2; date >> /tmp/log; done"))
    await cluster.exec("touch", "/tmp/log")
    following = asyncio.create_task(cluster.exec("sh", "-c", "timeout 5 tail -f /tmp/log"))
    await cluster.advance(6)
    assert (await following)[1].count("UTC") == 2


@pytest.mark.thorough
@pytest.mark.parametrize("is_late", [True, False])
async def test_sidecar_follows_a_file_that_its_neighbour_creates(is_late):
    writer = mounting(
        f"{'sleep 3; ' if is_late else ''}n=0; while true; do n=$((n+1)); echo line $n >> /d/log; sleep 1; done",
        "w",
    )
    cluster = Cluster(writer, mounting("tail -n+1 -F /d/log", "r"), volumes=[{"name": "v", "emptyDir": {}}])
    for name in ("w", "r"):
        cluster.runtime.start_container(cluster.pod, name, 0)
    await cluster.advance(7)
    log = await cluster.log("r")
    assert [line for line in log if line.startswith("line")][:3] == ["line 1\n", "line 2\n", "line 3\n"]
    assert ("tail: can't open '/d/log': No such file or directory\n" in log) is is_late


@pytest.mark.thorough
@pytest.mark.parametrize(("limit", "lines"), [("128Mi", ["before\n"]), ("512Mi", ["before\n", "after\n"])])
async def test_log_ends_where_the_memory_does(limit, lines):
    script = "echo before; head -c 300M /dev/zero | tail | wc -c >/dev/null; echo after; sleep 100"
    cluster = Cluster(shell(script, resources={"limits": {"memory": limit}}))
    await cluster.advance(30)
    assert await cluster.log() == lines


@pytest.mark.thorough
async def test_container_begins_when_the_earlier_one_has_done_what_it_does_first():
    writer = mounting("for i in $(seq 300); do :; done; echo x > /d/f; sleep 100", "w")
    cluster = Cluster(writer, mounting("cat /d/f; sleep 100", "r"), volumes=[{"name": "v", "emptyDir": {}}])
    for name in ("w", "r"):
        cluster.runtime.start_container(cluster.pod, name, 0)
    await cluster.advance(3)
    assert await cluster.log("r") == ["x\n"]


async def test_time_of_a_command_goes_on_over_a_signal():
    cluster = Cluster(shell("trap 'echo $SECONDS' USR1; sleep 20 & wait; sleep 100", image="bash"))
    await cluster.advance(6)
    await cluster.exec("kill", "-USR1", "1")
    await yield_to_loop(50)
    assert await cluster.log() == ["6\n"]
