"""A command that uses the network runs on the cluster's clock, whatever hides that in its text; others are computed in advance."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.live_containers import LiveContainers
from mockube.container_runtime.simulated.network.calls import decode_call, encode_reply
from mockube.container_runtime.simulated.programs.commands import host_of, main_command
from mockube.container_runtime.simulated.shell.process import NetworkCall, Sleep
from tests.support.images import IMAGES
from tests.support.shell_network import ShellNetwork

WAYS = yaml.safe_load((Path(__file__).parent / "hidden_programs.yaml").read_text())
VARIABLES = {
    "CLIENT": "wget",
    "URL": "http://nope",
    "COMMAND": "wget -qO- http://nope",
    "PART": "get",
    "SCRIPT": "wget -qO- http://nope || exit 7",
}
ENVIRONMENT = [{"name": name, "value": value} for name, value in VARIABLES.items()]


def container(**fields):
    return {"name": "c", "image": "busybox:1.36", "env": ENVIRONMENT, **fields}


def script(text, **fields):
    return container(command=["sh", "-c", text], **fields)


def pod(*containers, **spec):
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {"containers": list(containers), **spec},
    }


def runs_on_clock(subject, **spec):
    return bool(LiveContainers(IMAGES, Records()).command(pod(subject, **spec), subject))


def end_of(subject):
    """Return the exit code of a container's command in a cluster that does not have the name."""
    tree, network = pod(subject), ShellNetwork()
    host = host_of(IMAGES, tree, subject, References(), datetime(2030, 1, 1, tzinfo=UTC))
    execution, reply = main_command(IMAGES, tree, subject, References(), host), None
    while True:
        try:
            effect = execution.send(reply)
        except StopIteration as stop:
            return stop.value
        reply = None
        if isinstance(effect, NetworkCall):
            reply = encode_reply(network.answer(decode_call(effect.request)))
        elif isinstance(effect, Sleep):
            host.elapsed += effect.seconds


@pytest.mark.parametrize("way", [pytest.param(way, id=way["id"]) for way in WAYS])
def test_program_that_uses_the_network_ends_as_the_network_demands(way):
    subject = (
        script(way["script"]) if "script" in way else container(command=way["command"], args=way.get("args"))
    )
    assert runs_on_clock(subject)
    assert end_of(subject) == way["code"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("sleep 3600", id="a sleep"),
        pytest.param("echo wget -qO- http://nope", id="a text"),
        pytest.param("false && wget -qO- http://nope", id="a branch that is not taken"),
        pytest.param("wget() { echo mine; }; wget -qO- http://nope", id="a function of the name"),
        pytest.param("trap : TERM; while :; do sleep 1; done; curl http://nope", id="behind an endless loop"),
        pytest.param('host=db; echo "$host"; sleep 9', id="a name of a program as a variable"),
        pytest.param("exit 3; kubectl get pods", id="after the end"),
    ],
)
def test_command_that_only_names_a_program_is_computed(text):
    assert not runs_on_clock(script(text))


SETTING = {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}
OBJECTS = [
    {"name": "m", "configMap": {"name": "m"}},
    {"name": "d", "persistentVolumeClaim": {"claimName": "d"}},
]
MOUNTS = [{"name": "m", "mountPath": "/cfg"}, {"name": "d", "mountPath": "/data"}]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("eval 'echo $M'O'DE'", id="a variable of an object"),
        pytest.param("set | grep -q x", id="all variables"),
        pytest.param('env | grep "^M"', id="all variables by a program"),
        pytest.param("sh -c 'echo ${MODE:-x}'", id="a variable in another shell"),
        pytest.param('d=/c; cat "${d}fg/k"', id="a file of an object"),
        pytest.param("cd /c*g && ls", id="a pattern"),
        pytest.param(". /c'f'g/run.sh", id="a script of an object"),
        pytest.param('p=da; echo x > "/${p}ta/y"', id="a file of a claim"),
        pytest.param("cd ../da*; touch z", id="a folder of a claim"),
        pytest.param("ln -s /dat'a' /tmp/l; cat /tmp/l/x", id="a link to a claim"),
        pytest.param("n=pro; [ $(n''proc) = 1 ]", id="the processors of the node"),
        pytest.param("p'g'rep java", id="processes beside it"),
        pytest.param("cat /pr'o'c/8/cmdline", id="a file of a process"),
        pytest.param("head -c 20000000 /dev/ze'r'o > /dev/s'h'm/x", id="a disk that may be full"),
        pytest.param(
            "trap '$CLI nope' TERM; CLI=wget; while :; do sleep 1; done", id="the network after a signal"
        ),
        pytest.param("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done", id="much work"),
    ],
)
def test_command_that_asks_for_what_others_know_runs_on_the_clock(text):
    assert runs_on_clock(script(text, env=[SETTING], volumeMounts=MOUNTS), volumes=OBJECTS)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("echo x > /tmp/y; cat /tmp/y; sleep 60", id="its own files"),
        pytest.param("MODE=1; echo $MODE", id="a variable of its own"),
        pytest.param("echo /data /cfg '$MODE'", id="a text"),
        pytest.param("[ $(whoami) = root ] && [ $(id -u) = 0 ]", id="the accounts of its image"),
        pytest.param("kill -0 1", id="its own process"),
    ],
)
def test_command_that_its_container_answers_is_computed(text):
    assert not runs_on_clock(script(text, env=[SETTING], volumeMounts=MOUNTS), volumes=OBJECTS)


@pytest.mark.parametrize(
    ("text", "is_live"),
    [
        ("sleep 60", False),
        ("echo x; sleep 60", False),
        ("echo x > /cache/x", True),
        ("while :; do echo x; sleep 1; done", True),
        ("while :; do sleep 1; done", False),
    ],
)
def test_command_that_may_fill_a_small_disk_runs_on_the_clock(text, is_live):
    subject = script(text, volumeMounts=[{"name": "e", "mountPath": "/cache"}])
    volumes = [{"name": "e", "emptyDir": {"sizeLimit": "1Mi"}}]
    assert runs_on_clock(subject, volumes=volumes) is is_live


@pytest.mark.parametrize(
    ("earlier", "is_live"), [("$CLIENT -O /work/x $URL", True), ("echo x > /work/x", False)]
)
def test_command_that_reads_what_an_init_container_was_sent_runs_on_the_clock(earlier, is_live):
    mounts = [{"name": "w", "mountPath": "/work"}]
    init = script(earlier, volumeMounts=mounts) | {"name": "i"}
    spec = {"initContainers": [init], "volumes": [{"name": "w", "emptyDir": {}}]}
    assert runs_on_clock(script("cat /wor'k'/x", volumeMounts=mounts), **spec) is is_live
    assert not runs_on_clock(script("sleep 60", volumeMounts=mounts), **spec)
