"""What happens from outside at any moment joins a run: a script that is computed in advance ends as one that runs on the clock.

Each random script runs in two pods. In one of them it asks for the processors of its node first, so that it runs on the clock from its start.
Both get the same commands, files and signals at the same moments, and must have the same log, line by line with its times, and the same end.
"""

import pytest
from kubernetes import client as official

from mockube import Cluster
from mockube.apimachinery.randomness import SeededRandom, fraction

ON_CLOCK = "nproc > /dev/null\n"
TRAPS = ("", "trap 'echo usr1' USR1\n", "trap 'echo term; exit 7' TERM\n", "trap 'echo bye' EXIT\n")
SIMPLE = (
    "echo w{n}",
    "sleep {n}",
    "sleep 0.9",
    "i=$((i+{n})); echo i=$i",
    "[ -e /tmp/flag ] && echo has || echo no",
    "cat /tmp/flag 2> /dev/null; echo $?",
    "echo x >> /tmp/out; wc -l < /tmp/out",
    "echo $(( $(date +%s) - begin ))",
    "sleep {n} & wait; echo waited",
    "cat /vol/f 2> /dev/null; ls /vol",
    "v=$(echo a{n}; sleep {n}); echo $v",
    "(sleep {n}; echo sub); echo $?",
)
LOOPS = (
    "n=0; while [ ! -e /tmp/flag ] && [ $n -lt {n}5 ]; do n=$((n+1)); sleep 1; done; echo n=$n",
    "n=0; until [ -e /vol/f ] || [ $((n=n+1)) -gt {n} ]; do sleep 2; done; echo u=$n",
    "for x in a b c; do {first}; done",
    "if [ -s /tmp/flag ]; then {first}; else {second}; fi",
)
EVENTS = (
    "echo hi > /tmp/flag",
    "rm -f /tmp/flag",
    "kill -USR1 1",
    "kill -TERM 1",
    "echo v > /vol/f",
    "cat /tmp/out",
    "true",
    "echo more >> /tmp/out",
)
MOMENTS = tuple(half / 2 for half in range(1, 40))


def choose(random, options):
    return options[int(fraction(random) * len(options))]


def statement(random):
    chosen = choose(random, (*SIMPLE, *LOOPS))
    first, second = (choose(random, SIMPLE).format(n=choose(random, range(1, 7))) for _ in range(2))
    return chosen.format(n=choose(random, range(1, 7)), first=first, second=second)


def script(random):
    statements = [statement(random) for _ in range(choose(random, range(2, 9)))]
    begin = "i=0; n=0; begin=$(date +%s)\n" + choose(random, TRAPS)
    return begin + "\n".join(statements) + f"\necho end\nexit {choose(random, (0, 3))}\n"


def events(random):
    found = [(choose(random, MOMENTS), choose(random, EVENTS)) for _ in range(choose(random, range(4)))]
    return sorted(found)


def pod(name, command):
    mount = {"name": "v", "mountPath": "/vol"}
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", command], "volumeMounts": [mount]}
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def has_begun(tree):
    (status,) = tree["status"].get("containerStatuses") or [{}]
    return not (status.get("state") or {"waiting": {}}).get("waiting") and "state" in status


def execute(cluster, name, command):
    try:
        result = cluster.exec(f"pod/{name}", ["sh", "-c", command])
    except Exception as error:  # noqa: BLE001 - that a container has ended, or ends meanwhile
        return type(error).__name__
    return result.exit_code, result.stdout


def run_of(cluster, name):
    """Return how a container has ended, and its log with the times."""
    state = cluster.get("Pod", name)["status"]["containerStatuses"][0]["state"]["terminated"]
    pods = official.CoreV1Api(cluster.kubernetes())
    log = pods.read_namespaced_pod_log(name, "default", timestamps=True)
    return {key: value for key, value in state.items() if key != "containerID"}, log


@pytest.mark.parametrize(
    "seed",
    [*range(1), *(pytest.param(seed, marks=pytest.mark.release) for seed in range(1, 80))],
)
def test_events_from_outside_join_a_run_that_was_computed(seed):
    random, cases = SeededRandom(seed), {}
    with Cluster(seed=seed, nodes=1) as cluster:
        for number in range(26):
            cases[f"p{number}"] = script(random), events(random)
        for name, (text, _) in cases.items():
            cluster.create(pod(f"{name}-computed", text))
            cluster.create(pod(f"{name}-on-clock", ON_CLOCK + text))
        names = [f"{name}-{way}" for name in cases for way in ("computed", "on-clock")]
        for name in names:
            cluster.wait("Pod", name, has_begun)
        outputs, passed = {name: [] for name in names}, 0.0
        for moment in sorted({moment for _, found in cases.values() for moment, _ in found}):
            cluster.advance(moment - passed)
            passed = moment
            for name, (_, found) in cases.items():
                for command in (command for at, command in found if at == moment):
                    for way in ("computed", "on-clock"):
                        outputs[f"{name}-{way}"].append(execute(cluster, f"{name}-{way}", command))
        cluster.advance(300)
        for name, case in cases.items():
            computed, on_clock = (
                (*run_of(cluster, f"{name}-{way}"), outputs[f"{name}-{way}"])
                for way in ("computed", "on-clock")
            )
            assert computed == on_clock, case
