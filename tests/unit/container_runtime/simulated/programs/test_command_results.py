"""The end of a container's command: references that a kubelet replaces, the time at its start, and files of an unknown image."""

import pytest

from tests.support.container_runtimes import simulated_runtime
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

DELAYED = {"mockube.dev/start-after": "1h"}


def exit_code(script, *, image="example.org/app", annotations=None, seconds=8000, **fields):
    subject = container("c", "sh", "-c", script, **fields) | {"image": image}
    simulated = SimulatedPod(
        pod(subject, restartPolicy="Never", annotations=annotations), context=node_context(details=True)
    ).pass_time(seconds)
    return simulated.status["containerStatuses"][0]["state"]["terminated"]["exitCode"]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("[ '$$' = '$' ]", 0, id="a dollar by itself"),
        pytest.param("kill -0 $$", 2, id="kill with a dollar"),
        pytest.param('[ "$(echo $$)" = 1 ]', 0, id="within a reference"),
        pytest.param('[ "$(echo $(hostname))" = value ]', 1, id="a reference within a reference"),
        pytest.param('[ "$(NAME)" = value ]', 0, id="a reference"),
    ],
)
def test_kubelet_replaces_references_in_command(script, code):
    assert (
        exit_code(script, env=[{"name": "NAME", "value": "value"}, {"name": "hostname", "value": "value"}])
        == code
    )


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("date +%Y | grep -c 2030", 0),
        ("date +%Y | grep -c 1970", 1),
        ('[ "$(date +%H:%M)" = 01:00 ]', 0),
        ('sleep 61; [ "$(date +%H:%M)" = 01:01 ]', 0),
        ("date > /tmp/started; grep 2030 /tmp/started", 0),
    ],
)
def test_command_that_reads_time_ends_as_at_its_start(script, code):
    assert exit_code(script, annotations=DELAYED) == code


def test_probe_has_references_of_kubelet_and_hook_has_none():
    check = {"exec": {"command": ["sh", "-c", "[ '$$' = '$' ] && [ $(NAME) = value ]"]}}
    subject = SimulatedPod(
        pod(
            container(
                env=[{"name": "NAME", "value": "value"}],
                readinessProbe=check,
                lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "kill -0 $$"]}}},
            )
        ),
        context=node_context(details=True),
    ).pass_time(20)
    assert subject.status["containerStatuses"][0]["ready"] is True


def test_probe_in_real_time_has_references_of_kubelet():
    checked = container(
        image="busybox",
        env=[{"name": "HOST", "value": "db"}],
        readinessProbe={"exec": {"command": ["nc", "-z", "$(HOST)", "80"]}},
        lifecycle={"preStop": {"exec": {"command": ["nc", "-z", "$(HOST)", "80"]}}},
    )
    assert simulated_runtime().live_handlers(pod(checked), checked) == {
        "readinessProbe": ("nc", "-z", "db", "80"),
        "preStop": ("nc", "-z", "$(HOST)", "80"),
    }


def test_probe_that_reads_time_runs_in_real_time():
    heartbeat = "[ $(($(date +%s) - $(stat -c %Y /tmp/alive))) -lt 30 ]"
    checked = container(livenessProbe={"exec": {"command": ["sh", "-c", heartbeat]}})
    assert simulated_runtime().live_handlers(pod(checked), checked).keys() == {"livenessProbe"}


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("[ ! -e /nope ]", 0, id="absent"),
        pytest.param("[ -f /data/none ]", 1, id="a folder that images do not have"),
        pytest.param("[[ -d /nope ]]", 1, id="a condition of bash"),
        pytest.param("[ -f /etc/app.conf ]", 0, id="a folder of a system"),
        pytest.param("[ -x /app/run ]", 0, id="the folder of the program"),
        pytest.param("cat /config/app.yaml", 0, id="a file that is read"),
    ],
)
def test_file_that_is_tested_exists_where_images_have_files(script, code):
    assert exit_code(script) == code


def test_file_in_folder_that_specification_mentions_is_found():
    assert exit_code("[ -f /work/main.py ]", workingDir="/work/src") == 0


def is_ready(image, probe, pod_fields=None, **fields):
    probed = {"name": "c", "image": image, "readinessProbe": {"exec": {"command": probe}}, **fields}
    return (
        SimulatedPod(pod(probed, **(pod_fields or {})), context=node_context(details=True))
        .pass_time(60)
        .ready
    )


@pytest.mark.parametrize(
    ("image", "command", "expected"),
    [
        pytest.param("bitnami/memcached:1.6.39", ["pgrep", "memcached"], True, id="a server"),
        pytest.param("bitnami/memcached:1.6.39", ["pgrep", "redis"], False, id="another server"),
        pytest.param("example.org/haproxy", ["pgrep", "haproxy"], True, id="an unknown image"),
        pytest.param("example.org/app", ["pidof", "java"], True, id="a process that nobody knows"),
        pytest.param("nginx:1.25", ["sh", "-c", "pidof nginx || pidof nginx:"], True, id="a title"),
        pytest.param("redis:7-alpine", ["pidof", "redis-server"], True, id="a title with words"),
        pytest.param("redis:7-alpine", ["pgrep", "-x", "redis-server"], True, id="exactly"),
        pytest.param("httpd:2-alpine", ["pidof", "httpd"], True, id="a server with options"),
        pytest.param("nginx:1.25-alpine", ["pgrep", "nginx"], True, id="a variant"),
    ],
)
def test_probe_finds_first_process_of_its_container(image, command, expected):
    assert is_ready(image, command) is expected


@pytest.mark.parametrize(
    ("command", "probe", "expected"),
    [
        pytest.param(["sleep", "5000"], ["pidof", "sleep"], True, id="a program"),
        pytest.param(["sleep", "5000"], ["pgrep", "-f", "zzz"], False, id="pgrep leaves itself out"),
        pytest.param(["sleep", "5000"], ["sh", "-c", "pgrep -f zzz"], False, id="a shell becomes pgrep"),
        pytest.param(["sleep", "5000"], ["sh", "-c", "pgrep -f zzz; exit"], True, id="a shell around pgrep"),
        pytest.param(["sh", "-c", "while :; do sleep 9; done"], ["pidof", "sleep"], True, id="a loop"),
        pytest.param(["sh", "-c", "while :; do sleep 9; done"], ["pidof", "cat"], False, id="not in a loop"),
        pytest.param(["sh", "-c", "sleep 500 & wait"], ["pgrep", "-x", "sleep"], True, id="a job"),
        pytest.param(["sh", "-c", "exec sleep 500"], ["pgrep", "-x", "sh"], False, id="a replaced shell"),
        pytest.param(
            ["sh", "-c", "sleep 1; httpd -f -p 80"], ["sh", "-c", "ps | grep -q '[h]ttpd'"], True, id="ps"
        ),
        pytest.param(["sleep", "5000"], ["sh", "-c", "ps | grep -q '[h]ttpd'"], False, id="not in ps"),
    ],
)
def test_probe_finds_processes_of_command(command, probe, expected):
    assert is_ready("busybox:1.36", probe, command=command) is expected


@pytest.mark.parametrize(
    "probe", [["sh", "-c", "ps -ef | grep -q '[s]erver'"], ["sh", "-c", "ps -ef | grep -q '[w]orker'"]]
)
def test_list_of_processes_may_lack_some_of_unknown_program(probe):
    assert is_ready("example.org/app", probe, command=["/app/server"])


def test_probe_sees_processes_of_shared_namespace():
    probed = container("c", "sleep", "500", readinessProbe={"exec": {"command": ["pgrep", "nginx"]}})
    probed["image"] = "busybox:1.36"
    subject = pod(probed, {"name": "web", "image": "nginx:1.25"}, shareProcessNamespace=True)
    assert SimulatedPod(subject, context=node_context(details=True)).pass_time(60).ready


EMPTY = {"volumes": [{"name": "v", "emptyDir": {}}]}
MOUNTED = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}


@pytest.mark.parametrize(
    "probe",
    [
        ["cat", "/tmp/healthy"],
        ["ls", "/nope"],
        ["test", "-f", "/healthy"],
        ["stat", "/data/healthy"],
        ["grep", "ok", "/data/healthy"],
        ["sh", "-c", "[ -e /data/healthy ]"],
    ],
)
@pytest.mark.parametrize(
    ("image", "fields"),
    [("nginx:1.25", {}), ("postgres:16", {"env": [{"name": "POSTGRES_PASSWORD", "value": "x"}]})],
)
@pytest.mark.parametrize("mounts", [{}, MOUNTED])
def test_probe_finds_no_file_beside_server_without_writer(image, fields, mounts, probe):
    assert not is_ready(image, probe, pod_fields=EMPTY, **fields, **mounts)


@pytest.mark.parametrize(
    ("image", "fields", "probe"),
    [
        pytest.param("example.org/app", {}, ["cat", "/data/healthy"], id="an unknown image"),
        pytest.param("example.org/team/nginx", {}, ["cat", "/data/healthy"], id="a guess"),
        pytest.param("redis:7", {}, ["cat", "/data/dump.rdb"], id="a folder of the server"),
        pytest.param("nginx:1.25", {}, ["cat", "/etc/nginx/mime.types"], id="a folder of the system"),
        pytest.param(
            "httpd:2", {"env": [{"name": "X", "value": "/data"}]}, ["cat", "/data/x"], id="a variable"
        ),
        pytest.param("mongo:7", {}, ["ls", "/tmp/mongodb-27017.sock"], id="a socket"),
    ],
)
def test_probe_may_find_file_that_may_exist(image, fields, probe):
    assert is_ready(image, probe, pod_fields=EMPTY, **MOUNTED, **fields)


def test_probe_does_not_find_file_in_folder_that_image_lacks():
    assert not is_ready("busybox:1.36", ["cat", "/data/healthy"], command=["sleep", "1000"])


def test_hook_that_reads_file_that_is_not_there_fails():
    hook = {"postStart": {"exec": {"command": ["cat", "/nope/x"]}}}
    subject = pod({"name": "c", "image": "nginx:1.25", "lifecycle": hook})
    assert not SimulatedPod(subject, context=node_context(details=True)).pass_time(60).ready


@pytest.mark.parametrize(
    "probe",
    [
        ["tail", "-f", "/etc/hosts"],
        ["tail", "-f", "/dev/null"],
        ["sh", "-c", "tail -f /etc/passwd"],
        ["grep", "-q", "zzz", "/etc/passwd"],
    ],
)
def test_probe_fails_that_hangs_or_finds_nothing(probe):
    assert not is_ready("busybox:1.36", probe, command=["sleep", "1000"])


@pytest.mark.parametrize(
    "probe", [["cat", "/dev/null"], ["top", "-b", "-n1"], ["grep", "root", "/etc/passwd"]]
)
def test_probe_succeeds_with_files_of_every_container(probe):
    assert is_ready("busybox:1.36", probe, command=["sleep", "1000"])
