"""Costly programs in simulated containers: how long they stall the event loop, when they end, and what they keep in memory."""

import asyncio
import resource
from math import inf
from time import process_time

import pytest

from mockube.container_runtime.behavior import KILLED
from mockube.container_runtime.runtime import ExecRequest
from mockube.container_runtime.simulated.client_pace import ClientPace
from mockube.container_runtime.simulated.execution import run_to_end
from mockube.container_runtime.simulated.programs.program import ANY_YEAR, CommandContext, program_of
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.memory import OutOfMemory
from mockube.container_runtime.simulated.shell.process import CommandStart
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.work_turns import next_turn
from mockube.container_runtime.streams import StreamsClosed
from tests.support.container_runtimes import ClientStreams
from tests.support.event_loop import yield_to_loop
from tests.support.hostile.costly_programs import (
    costly_program,
    longest_collection,
    longest_stall,
    run_for,
)
from tests.support.hostile.machine_speed import allowed
from tests.support.images import IMAGES
from tests.support.instant_clock import InstantClock
from tests.support.running_containers import Cluster, shell

BOUND = 0.05
"""Seconds of CPU time for which a program may use the loop at once, on a quiet machine."""
ATTEMPTS = 3
"""A program that takes longer is measured again: the memory of a busy machine is slow at times."""
CHUNK = 125
"""Random programs of one test."""
ENDLESS = ("sh", "-c", "cat /dev/zero | head -c 20000000000000 | wc -c")
CONTAINER = {"name": "c", "image": "busybox", "command": ["sleep", "1000"]}
GROWTH = 600 << 10
"""KiB by which all programs together may let the memory of the process grow."""

KNOWN = [
    "cat /dev/zero | head -c 20000000000 | wc -c",
    "yes | head -200000 | xargs -n1 echo",
    "x=a; while :; do x=${x//a/aaaaaaaaaa}; done",
    "while read x; do :; done < /dev/zero",
    "seq 1 10000000 | wc -l",
    "seq 1 400000 | sort -rn | head -1",
    "head -c 4000000 /dev/urandom | od | wc",
    "set -- $(seq 1 150000); while [ $# -gt 0 ]; do shift; done",
    'a=($(seq 1 100000)); b=("${a[@]/1/2}"); echo "${b[*]}" | wc',
    "a=b+b+b+b b=c+c+c+c+c c=d+d+d+d+d d=e+e+e+e e=f+f+f+f f=g+g+g+g+g; echo $((a))",
    "awk 'BEGIN { for (i = 0; i < 100000; i++) a[i] = i; while (1) for (k in a) break }'",
    "yes a | head -600 > /dev/shm/a; yes b | head -600 > /dev/shm/b; diff /dev/shm/a /dev/shm/b | wc",
    "printf '%s\\n' $(seq 1 100000) | wc; printf '%999999d' $(seq 1 16) | wc -c",
    "yes ab | head -5000 | tr -d '\\n' | grep -o a | wc -l",
    "f() { f | f; }; f",
    "while :; do sleep 100 & done",
    "factor 999999999989",
    "cat /files/line | sh",
    "x=$(head -c 700000 /dev/zero | tr '\\0' a); echo \"$x\"* | wc; test -e $x/$x; cat /${x//a//a}",
    "for i in {1..9999}; do :; done; echo {a,b}{c,d}{1..2400} | wc",
    "x=$(yes 'if true; then :; fi;' | head -9000); eval \"f() { $x }\"; eval \"$x\"",
    "eval \"echo $(yes '`:`' | head -40000 | tr '\\n' ' ')\"",
    "head -c 1000000000 /dev/urandom | tr -d '\\n' | tr '\\0' a",
    "x=$(cat /dev/urandom); echo $x",
    "x=$(yes [ | tr -d '\\n' | head -c 3000000); echo $x",
    "yes | head -c 4000000 | sed -n 'H;${x;p}'",
    "x=$(yes aaaaaaaaaaaaaaaaaaaab | head -70000); case $x in [$x]) ;; esac",
    "x=$(yes '\\\\a*' | head -c 3000000); case a in \"$x\") ;; esac; y=${x#*\"$x\"}; y=${x%$x}; [[ $x == $x ]]",
    "x=$(head -c 4000000 /dev/zero | tr '\\0' a); find / -name $x; expr $x : $x; date -d $x; env $x",
    "eval \"a=( $(seq 1 40000 | tr '\\n' ' ') )\"; eval \"cat <<X $(yes '$a' | head -50000)\"",
]  # fmt: skip


def stall_of(argv, turns, files=None):
    longest = longest_stall(argv, turns, files)
    for _ in range(1, ATTEMPTS):
        longest = longest if longest < BOUND else min(longest, longest_stall(argv, turns, files))
    return longest


@pytest.mark.timed
@pytest.mark.parametrize("script", KNOWN)
def test_a_costly_script_shares_the_loop(script):
    assert stall_of(["bash", "-c", script], 100) < allowed(BOUND)


@pytest.mark.timed
@pytest.mark.parametrize(
    "script",
    [
        "wc /dev/shm/*/* | tail -1",
        "sort /dev/shm/*/* | uniq -c",
        "touch /dev/shm/*/*",
        "chmod -R 700 /dev/shm; chown -R 1 /dev/shm; du -s /dev/shm",
        "grep -rl zz /dev/shm",
        "rm -rf /dev/shm/*",
        "mkdir /dev/shm/all; mv /dev/shm/? /dev/shm/?? /dev/shm/all; cp -r /dev/shm/all /dev/shm/more; mv /dev/shm/more /tmp",
        "cp -r /dev/shm /tmp/a; ls -lR /dev/shm; find /dev/shm -delete",
    ],
)
def test_a_script_with_many_files_shares_the_loop(script):
    folders = {f"/dev/shm/{number}": FileEntry() for number in range(50)}
    files = {f"/dev/shm/{number % 50}/{number}": FileEntry(data=b"a\n") for number in range(20_000)}
    assert stall_of(["bash", "-c", script], 2_000, {**folders, **files}) < allowed(BOUND)


@pytest.mark.timed
@pytest.mark.parametrize(
    "script", ["len(str(10**10**8))", f"x = {'-' * 100_000}1", "x = [0] * 10**6\nwhile True: x == x"]
)
def test_a_costly_script_of_python_shares_the_loop(script):
    assert stall_of(["python3", "-c", script], 100) < allowed(BOUND)


@pytest.mark.timed
@pytest.mark.parametrize("script", KNOWN)
def test_costly_script_is_computed_in_advance_only_in_part(script):
    assert time_in_advance(["bash", "-c", script]) < allowed(BOUND)


@pytest.mark.release
@pytest.mark.parametrize("start", range(0, 2_000, CHUNK))
def test_2000_random_costly_programs_are_computed_in_advance_only_in_part(start):
    slow = {}
    for seed in range(start, start + CHUNK):
        argv = costly_program(seed)
        if (seconds := time_in_advance(argv)) >= allowed(BOUND):
            slow[seed] = (seconds, argv)
    assert not slow


def time_in_advance(argv):
    """Return the CPU time in which the command of a container is computed before it runs."""
    container, longest = {"name": "c", "image": "python:3.11.7", "command": argv}, inf
    for attempt in range(ATTEMPTS):
        before = process_time()
        program_of(
            IMAGES,
            container,
            CommandContext(year=ANY_YEAR + attempt),
        )
        if (longest := min(longest, process_time() - before)) < BOUND:
            break
    return longest


@pytest.mark.thorough
async def test_container_that_does_much_ends_as_its_script_says():
    cluster = Cluster(shell("seq 3000 | while read x; do :; done; sleep 1; exit 3"), restartPolicy="Never")
    cluster.runtime.start_container(cluster.pod, "c", 0)
    await cluster.advance(120)
    assert cluster.end().code == 3


@pytest.mark.timed
@pytest.mark.parametrize("seed", range(20))
def test_random_costly_programs_share_the_loop(seed):
    argv = costly_program(seed)
    assert stall_of(argv, 60) < allowed(BOUND), argv


@pytest.mark.release
@pytest.mark.parametrize("start", range(0, 5_000, CHUNK))
def test_5000_random_costly_programs_share_the_loop(start):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slow = {}
    for seed in range(start, start + CHUNK):
        argv = costly_program(seed)
        if (seconds := stall_of(argv, 200)) >= allowed(BOUND):
            slow[seed] = (seconds, argv)
    assert not slow
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH


@pytest.mark.thorough
@pytest.mark.parametrize(
    "script",
    [
        "for i in $(seq 1 100); do (x=$(head -c 400000 /dev/zero | tr '\\0' a)$i; sleep 100) & done; wait",
        "for i in $(seq 1 300); do head -c 400000 /dev/zero | tr '\\0' a | base64 -w0 | sleep 1000 & done; wait",
    ],
)
def test_processes_that_keep_too_much_end_as_without_memory(script, monkeypatch):
    monkeypatch.setattr(limits, "MAX_KEPT", 4 << 20)
    assert isinstance(run_for(["bash", "-c", script], 40_000)[0], OutOfMemory)


@pytest.mark.timed
@pytest.mark.parametrize(
    "script",
    [
        'set -- $(seq 1 150000); while :; do set -- "$@"; done',
        'a=($(seq 1 150000)); for i in 1 2 3 4 5 6; do b=("${a[@]/1/2}"); done',
        "for i in $(seq 1 100000); do (sleep $i) & done; wait",
    ],
)
def test_the_garbage_of_a_costly_script_is_collected_in_parts(script):
    assert longest_collection(["bash", "-c", script], 6_000) < allowed(BOUND)


@pytest.mark.thorough
async def test_many_commands_take_turns():
    def work():
        while True:
            steps.append(None)
            yield CommandStart()

    class NoInput:
        stdin = None

    steps = []
    commands = [
        asyncio.create_task(run_to_end(work(), NoInput(), ClientPace(InstantClock()), None))
        for _ in range(20)
    ]
    await yield_to_loop()
    for _ in range(100):
        before = len(steps)
        await yield_to_loop()
        assert len(steps) - before <= 51
    for command in commands:
        command.cancel()
    await asyncio.gather(*commands, return_exceptions=True)
    await next_turn()


@pytest.mark.thorough
async def test_a_command_that_works_ends_when_its_client_leaves():
    cluster, streams = Cluster(CONTAINER), ClientStreams()
    running = asyncio.create_task(execute(cluster, streams, *ENDLESS))
    await yield_to_loop(100)
    assert not running.done()
    streams.departure.set()
    await yield_to_loop(20)
    with pytest.raises(StreamsClosed):
        running.result()


@pytest.mark.thorough
async def test_a_command_that_waits_goes_on_when_its_client_leaves():
    cluster, streams = Cluster(CONTAINER), ClientStreams()
    running = asyncio.create_task(execute(cluster, streams, "sh", "-c", "sleep 5; exit 3"))
    await yield_to_loop(100)
    streams.departure.set()
    await cluster.advance(6)
    assert running.result() == 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda cluster: cluster.runtime.remove_pod("u"), id="pod is removed"),
        pytest.param(
            lambda cluster: cluster.runtime.stop_container(cluster.pod, "c", 0), id="container is stopped"
        ),
    ],
)
async def test_a_command_that_works_ends_with_its_container(end):
    cluster = Cluster(CONTAINER)
    running = asyncio.create_task(execute(cluster, ClientStreams(), *ENDLESS))
    await yield_to_loop(100)
    end(cluster)
    await yield_to_loop(20)
    assert running.result() == KILLED


async def execute(cluster, streams, *command):
    run = await cluster.runtime.exec(cluster.pod, "c", ExecRequest(command=list(command)))
    return await run(streams)
