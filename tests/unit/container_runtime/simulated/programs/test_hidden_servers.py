"""A server that a script hides is the same as one that its text names: it runs in real time, and it ends as itself."""

from math import inf

import pytest

from mockube.container_runtime.behavior import KILLED
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.live_containers import LiveContainers
from mockube.container_runtime.simulated.programs.program import program_of
from tests.support.images import IMAGES

AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.47"
EXECUTED = {
    "plain": "exec {}",
    "the only command": "{}",
    "a variable": "S='{}'; exec $S",
    "positional parameters": 'set -- {}; exec "$@"',
    "eval": "eval 'exec {}'",
    "another shell": "exec sh -c 'exec {}'",
    "a sourced file": "echo 'exec {}' > /tmp/x; . /tmp/x",
    "a file with an interpreter": "printf '#!/bin/sh\\nexec {}\\n' > /tmp/x; chmod +x /tmp/x; exec /tmp/x",
    "env": "exec env A=1 {}",
    "nohup": "exec nohup {}",
    "a function": 'f() {{ exec "$@"; }}; f {}',
    "an alternative": "false || exec {}",
    "after a sleep": "sleep 5; exec {}",
}
BESIDE = {
    "before another command": "{}; exit 0",
    "in the background": "{} & wait",
    "timeout": "exec timeout 9999 {}",
    "another shell that waits": "exec sh -c '{}; exit 0'",
    "not called": "echo exec {}; sleep inf",
}


def container(image, text, **fields):
    return {"name": "c", "image": image, "command": ["sh", "-c", text], **fields}


def is_live(subject):
    pod = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {"containers": [subject]}}
    return bool(LiveContainers(IMAGES, Records()).command(pod, subject))


def stop_of(text):
    behavior = program_of(IMAGES, container(AGNHOST, text))
    return behavior.seconds, behavior.stop_code, behavior.stop_seconds


@pytest.mark.parametrize("way", EXECUTED)
def test_server_in_the_first_process_ends_by_the_signal_itself(way):
    assert stop_of(EXECUTED[way].format("/agnhost netexec")) == (None, 2, 0)


@pytest.mark.parametrize("way", BESIDE)
def test_server_beside_the_first_process_does_not_end_it(way):
    assert stop_of(BESIDE[way].format("/agnhost netexec"))[1:] == (KILLED, inf)


@pytest.mark.parametrize("way", [*EXECUTED, "before another command", "in the background"])
def test_server_with_a_configuration_runs_in_real_time(way):
    text = {**EXECUTED, **BESIDE}[way]
    assert is_live(container("nginx", text.format("nginx -g daemon\\ off\\;")))


@pytest.mark.parametrize("text", ["echo nginx; sleep inf", "false && nginx; sleep inf", "sleep 9 # nginx"])
def test_server_that_is_only_named_does_not(text):
    assert not is_live(container("nginx", text))
