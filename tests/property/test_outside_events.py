"""A script that is computed until something outside happens ends as one that has run on the clock from its start.

Two containers with random scripts share files or processes in some pods, and at random moments a client writes files, sends signals and looks around. The same happens
to a twin, in which a client runs `true` before anything else: it runs step by step from then on. Logs, ends and answers are equal.
"""

import pytest

from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated.predictions import SimulatedPredictions
from tests.support.event_loop import yield_to_loop
from tests.support.images import IMAGES
from tests.support.running_containers import Cluster, shell
from tests.support.seeded import source

SECONDS = 22
TURNS = 50
"""Turns of the event loop in which all that is to happen at a moment has happened."""
FRACTIONS = (0.5, 0.25, 0.75)
"""Scripts sleep whole seconds: nothing else happens at the moment of an event."""
CHUNK = 10

STATEMENTS = (
    "echo {k}", "n=$((n+{k})); echo $n", "echo $n >> /tmp/log", "cat /tmp/f 2>/dev/null || echo none", "[ -f /tmp/g ] && echo yes", "rm -f /tmp/f", "echo a{k} > /tmp/f", "ls /tmp",
    "wc -l < /tmp/log", "cat /tmp/log", "touch /tmp/g", "sleep {k}", "sleep {k}", "sleep {k}", "sleep {k} & wait $!; echo waited $?", "timeout {k} sleep 2; echo $?", "seq {k} | while read x; do sleep 1; echo $x; done",
    "kill -USR1 $$", "date +%s", "x=$(cat /tmp/f 2>/dev/null); echo got $x", "read y < /tmp/f; echo y=$y", "{{ sleep {k}; echo late >> /tmp/log; }} & true", "wait", "test -s /tmp/log && tail -n1 /tmp/log", "mkdir -p /tmp/d{k}", "echo $SECONDS",
    "find /tmp -type f | sort", "trap 'echo usr' USR1", "trap 'echo term; exit 4' TERM", "trap 'n=100' USR1", "trap '' TERM", "trap - USR1", "echo err >&2", "mv /tmp/f /tmp/g 2>/dev/null; echo $?", "cp /tmp/g /tmp/f 2>&1", "jobs", "echo $!",
    "ps | wc -l", "pgrep sleep | wc -l", "printf 'x'", "head -c 2 /tmp/f 2>/dev/null; echo", "sh -c 'sleep {k}; echo sub'", "tail -f /tmp/log & sleep {k}; kill $!", "exec 3>>/tmp/log; echo three >&3", "head -3 /tmp/log | while read l; do echo l $l; done",
    "exit {k}",
)  # fmt: skip
COMPOUNDS = (
    "until [ -f /tmp/go ]; do sleep 1; {s}; done", "for i in 1 2 3; do {s}; sleep 1; done", "while sleep 1; do {s}; n=$((n+1)); [ $n -gt 6 ] && break; done", "if [ -f /tmp/f ]; then {s}; else {t}; fi", "({s}; {t})", "f() {{ {s}; sleep 1; {t}; }}; f; f", "{s} && {t}",
    "case $n in 0) {s};; *) {t};; esac", "while :; do {s}; sleep {k}; done", "{{ {s}; sleep 1; {t}; }} > /tmp/log 2>&1", "{s} | cat",
)  # fmt: skip
EVENTS = (
    "echo ev{k} > /tmp/f", "touch /tmp/go", "rm -f /tmp/f", "kill -USR1 1", "kill -TERM 1", "kill -INT 1", "kill -STOP 1", "kill -CONT 1", "cat /tmp/log", "ls /tmp", "echo more >> /tmp/log", "cat /tmp/f", "ps", "kill $(pgrep sleep | head -1)",
    "rm -rf /tmp/log", "ls /proc/1/fd | wc -l", "date +%s", "killall sleep", "pkill -KILL sleep", "exit 3",
)  # fmt: skip


def statement(random, depth):
    count = random.randint(1, 4)
    if not depth or random.random() > 0.4:
        return random.choice(STATEMENTS).format(k=count)
    inner = {"s": statement(random, depth - 1), "t": statement(random, depth - 1)}
    return random.choice(COMPOUNDS).format(k=count, **inner)


def script(random):
    return "; ".join(["n=0", *(statement(random, 2) for _ in range(random.randint(2, 6)))])


def events(random):
    """Return what a client does: moments, commands, and the containers in which it runs them."""
    return sorted(
        (random.randint(0, 16) + fraction, random.choice(EVENTS).format(k=random.randint(1, 9)), container)
        for fraction, container in zip(
            FRACTIONS[: random.randint(1, 3)], random.choices("ccd", k=3), strict=False
        )
    )


def pod_of(random):
    """Return two containers that share files, processes or, mostly, neither: then both are computed until a client comes."""
    shares_files, shares_processes = random.random() < 0.3, random.random() < 0.2
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/tmp"}]} if shares_files else {}
    containers = [shell(script(random), name, **mounts) for name in "cd"]
    return containers, {
        "restartPolicy": "Never",
        "shareProcessNamespace": shares_processes,
        "volumes": [{"name": "v", "emptyDir": {}}],
    }


class Story:
    """A pod to which things happen, and what a client has seen of it."""

    def __init__(self, containers, spec):
        self._containers, self._cluster, self._time = containers, Cluster(*containers, **spec), 0.0
        self._began = self._cluster.clock.now()
        self.answers, self.logs, self.ends = [], {}, {}

    async def begin(self, *, on_clock):
        for container in self._containers:
            self._cluster.runtime.start_container(self._cluster.pod, container["name"], 0)
        await yield_to_loop(TURNS)
        for container in self._containers if on_clock else ():
            await self._cluster.exec("true", container=container["name"])

    async def tell(self, happening):
        """Let all of it happen, but what would happen to a container that has ended."""
        happening = [*happening]
        fractions = {0.0, *(moment % 1 for moment, _, _ in happening)}
        moments = sorted(second + fraction for second in range(SECONDS) for fraction in fractions)
        for moment in [*moments[1:], SECONDS - 0.1]:
            self._cluster.clock.advance(moment - self._time)
            self._time = moment
            await yield_to_loop(TURNS)
            while happening and happening[0][0] <= moment:
                await self._run(*happening.pop(0))
        self.ends = {container["name"]: self._end(container) for container in self._containers}
        self.logs = {name: await self._log(name) for name in "cd"}

    async def _run(self, moment, command, name):
        if self._end(next(each for each in self._containers if each["name"] == name)) is None:
            answer = await self._cluster.exec("sh", "-c", command, container=name)
            self.answers.append((moment, command, name, answer))
            await yield_to_loop(TURNS)

    async def _log(self, name):
        """Return the lines with their times: the time that commands themselves take is rounded away."""
        source, lines = await self._cluster.log_source(name), []
        while source.is_behind(self._cluster.clock.now()):
            lines += source.advance(self._cluster.clock.now())
        source.close()
        return [(round((line.at - self._began).total_seconds(), 1), line.text) for line in lines]

    def _end(self, container):
        """Return the exit code with which a container has ended, of one that is computed as it is predicted; None if it runs."""
        state = self._cluster.runtime.states(self._cluster.pod).get(container["name"])
        if state is not None:
            return state.exit and state.exit.code
        pod = self._cluster.pod
        run = SimulatedPredictions(IMAGES).program_of_run(pod, container, script_of({}))()
        return None if run.seconds is None or run.seconds > self._time else run.exit_code


async def check(seed):
    random = source("outside events", seed)
    containers, spec = pod_of(random)
    happening = events(random)
    computed, on_clock = Story(containers, spec), Story(containers, spec)
    await computed.begin(on_clock=False)
    await on_clock.begin(on_clock=True)
    for story in (computed, on_clock):
        await story.tell(happening)
    told = (seed, [container["command"][-1] for container in containers], happening)
    assert computed.answers == on_clock.answers, told
    assert (computed.logs, computed.ends) == (on_clock.logs, on_clock.ends), told


@pytest.mark.parametrize("start", range(0, 60, CHUNK))
async def test_scripts_end_as_if_they_had_run_on_the_clock(start):
    for seed in range(start, start + CHUNK):
        await check(seed)


@pytest.mark.release
@pytest.mark.parametrize("start", range(60, 2_060, CHUNK))
async def test_2000_other_scripts_end_as_if_they_had_run_on_the_clock(start):
    for seed in range(start, start + CHUNK):
        await check(seed)
