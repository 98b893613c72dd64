"""Logs of simulated containers are computed from their commands for any time after the start."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.runs import NoLogs, run_of
from mockube.container_runtime.simulated.programs.commands import host_of, main_process
from mockube.container_runtime.simulated.programs.log_replay import (
    MAX_EFFECTS,
    MAX_ITERATIONS_LOGGED,
    LogReplay,
)
from tests.support.images import IMAGES

NOTHING = References()
START = datetime(2030, 1, 1, tzinfo=UTC)


def pod(script="", *, annotations=None, status=None, **container):
    command = {"command": ["sh", "-c", script]} if script else {}
    spec = {"containers": [{"name": "c", "image": "app:1", **command, **container}]}
    metadata = {"name": "p", "namespace": "shop", "uid": "u", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": spec, "status": {"podIP": "10.1.2.3", **(status or {})}}


def log_lines(described, seconds, references=NOTHING):
    container = described["spec"]["containers"][0]
    host = host_of(IMAGES, described, container, references, START)
    replay = LogReplay(main_process(IMAGES, described, container, references, host), host, START)
    until, lines = START + timedelta(seconds=seconds), []
    while replay.is_behind(until):
        lines += replay.advance(until)
    return lines


def texts(*arguments, **options):
    return [line.text.decode() for line in log_lines(*arguments, **options)]


def test_log_lines_have_time_of_their_writing():
    lines = log_lines(pod("echo a; sleep 2; echo b >&2; sleep 100; echo late"), 60)
    assert [((line.at - START).seconds, line.stream, line.text) for line in lines] == [
        (0, 1, b"a\n"),
        (2, 2, b"b\n"),
    ]


def test_unterminated_line_is_logged_at_container_end():
    assert texts(pod("echo -n a; echo -n b"), 1) == ["ab"]


@pytest.mark.thorough
def test_endless_loop_keeps_latest_output():
    lines = log_lines(pod("while true; do date +%s; sleep 1; done"), 30 * 86400)
    assert lines[-1].text == b"%d\n" % (START + timedelta(days=30)).timestamp()
    assert len(lines) <= MAX_ITERATIONS_LOGGED + 2


@pytest.mark.thorough
def test_long_log_starts_later():
    lines = log_lines(pod("i=0; while true; do i=$((i+1)); echo $i; sleep 1; done"), 30 * 86400)
    assert len(lines) < MAX_EFFECTS
    assert lines[-1].at == START + timedelta(days=30)


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        (pod(), "the image app:1 does not run"),
        (pod(command=["nginx"]), "nginx does not run"),
        (pod("make"), "make does not run"),
    ],
)
def test_unsimulated_command_is_logged_once(described, reason):
    assert texts(described, 3600) == [f"mockube: container c is simulated: {reason}\n"]


def test_invalid_script_is_logged_with_its_line():
    assert texts(pod("echo a\nfi"), 3600) == ["a\n", 'sh: 2: Syntax error: "fi" unexpected\n']


def test_log_annotation_applies_to_all_or_one_container():
    assert texts(pod(annotations={"mockube.dev/run": "echo hi from $HOSTNAME"}), 1) == ["hi from p\n"]
    assert texts(pod("echo own", annotations={"mockube.dev/run.c": "echo other"}), 1) == ["other\n"]
    assert texts(pod("echo own", annotations={"mockube.dev/run.d": "echo other"}), 1) == ["own\n"]


REFERENCES = References(
    config_maps={"cm": {"data": {"A": "1", "b.txt": "text"}, "binaryData": {"raw": "AAE="}}},
    secrets={"s": {"data": {"token": "c2VjcmV0"}}},
    services=(
        {
            "metadata": {"name": "my-db", "namespace": "shop"},
            "spec": {"clusterIP": "10.0.0.7", "ports": [{"port": 5432, "name": "sql"}]},
        },
    ),
    tokens={("", 3607): "jwt"},
    allocatable={"cpu": "32", "memory": "1Gi"},
)


def test_environment_is_that_of_a_kubelet():
    described = pod(
        envFrom=[{"configMapRef": {"name": "cm"}, "prefix": "X_"}],
        env=[
            {"name": "PLAIN", "value": "$(X_A)-$$(X_A)-$(NONE)"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {
                "name": "ZERO",
                "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}},
            },
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {
                "name": "MI",
                "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}},
            },
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}},
            {
                "name": "GONE",
                "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x", "optional": True}},
            },
        ],
        resources={"requests": {"memory": "1500Ki"}},
    )
    found = environment_of(described, described["spec"]["containers"][0], REFERENCES)
    assert found["HOSTNAME"] == "p"
    assert found["MY_DB_SERVICE_HOST"] == "10.0.0.7"
    assert found["MY_DB_SERVICE_PORT_SQL"] == "5432"
    assert found["MY_DB_PORT_5432_TCP_ADDR"] == "10.0.0.7"
    chosen = {
        name: found.get(name) for name in ("X_A", "PLAIN", "NAME", "IP", "ZERO", "CPU", "MI", "TOKEN", "GONE")
    }
    assert chosen == {
        "X_A": "1",
        "PLAIN": "1-$(X_A)-$(NONE)",
        "NAME": "p",
        "IP": "10.1.2.3",
        "ZERO": "0",
        "CPU": "32",
        "MI": "2",
        "TOKEN": "secret",
        "GONE": None,
    }


def test_volumes_are_files():
    names = ("config", "secret", "all", "empty")
    described = pod(
        "cat /config/* /secret/token /all/t /all/labels; ls /empty; cat /one",
        volumeMounts=[
            *({"name": name, "mountPath": f"/{name}"} for name in names),
            {"name": "config", "mountPath": "/one", "subPath": "A"},
        ],
    )
    described["metadata"]["labels"] = {"app": "web"}
    described["spec"]["volumes"] = [
        {
            "name": "config",
            "configMap": {"name": "cm", "items": [{"key": "A", "path": "A"}, {"key": "b.txt", "path": "b"}]},
        },
        {"name": "secret", "secret": {"secretName": "s"}},
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "t", "expirationSeconds": 3607}},
                    {
                        "downwardAPI": {
                            "items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
                        }
                    },
                ]
            },
        },
        {"name": "empty", "emptyDir": {}},
    ]
    assert texts(described, 1, REFERENCES) == ['1textsecretjwtapp="web"1']


ENDED = {"startedAt": "2030-01-01T00:00:00Z", "finishedAt": "2030-01-01T00:00:09Z", "exitCode": 1}


@pytest.mark.parametrize(
    ("state", "last", "previous", "answer"),
    [
        ({"running": {"startedAt": "2030-01-01T00:00:00Z"}}, {}, False, (2, 0, None)),
        ({"terminated": ENDED}, {}, False, (2, 0, 9)),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, {"terminated": ENDED}, False, (2, 0, 9)),
        ({"running": {"startedAt": "2030-01-01T00:00:20Z"}}, {"terminated": ENDED}, True, (1, 0, 9)),
        (
            {"waiting": {"reason": "ContainerCreating"}},
            {},
            False,
            'container "c" in pod "p" is waiting to start: ContainerCreating',
        ),
        (
            {"waiting": {"reason": "ImagePullBackOff"}},
            {},
            False,
            'container "c" in pod "p" is waiting to start: trying and failing to pull image',
        ),
        ({"running": {}}, {}, True, 'previous terminated container "c" in pod "p" not found'),
        (None, {}, False, 'container "c" in pod "p" is not available'),
    ],
)
def test_run_of_log_request_is_chosen(state, last, previous, answer):
    statuses = [] if state is None else [{"name": "c", "state": state, "lastState": last, "restartCount": 2}]
    described = pod(status={"containerStatuses": statuses})
    if isinstance(answer, str):
        with pytest.raises(NoLogs) as refused:
            run_of(described, "c", previous=previous)
        assert str(refused.value) == answer
        return
    run = run_of(described, "c", previous=previous)
    ended = None if run.finished is None else (run.finished - START).seconds
    assert (run.restarts, (run.started - START).seconds, ended) == answer
