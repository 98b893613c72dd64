"""The effect of container commands on a pod, with its environment, user, volumes and image."""

import pytest

from mockube.apimachinery.meta import with_metadata
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod


def index(number):
    """Return a pod of an Indexed Job that reads its completion index from a variable."""
    path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    env = [{"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    annotations = {"batch.kubernetes.io/job-completion-index": str(number)}
    script = "if [ $(expr ${INDEX} % 2) -ne 0 ]; then exit 1; else exit 0; fi"
    return pod(container("c", "sh", "-c", script, env=env), policy="Never", annotations=annotations)


def test_command_reads_downward_api():
    assert [SimulatedPod(index(number)).status["phase"] for number in range(3)] == [
        "Succeeded",
        "Failed",
        "Succeeded",
    ]


@pytest.mark.parametrize(
    ("context", "own", "code"),
    [({}, {}, 3), ({"runAsUser": 1001}, {}, 0), ({"runAsUser": 7}, {"runAsUser": 1001}, 0)],
)
def test_command_runs_as_user_of_security_context(context, own, code):
    one = container("c", "sh", "-c", "test $(id -u) -eq 1001 || exit 3", securityContext=own)
    simulated = SimulatedPod(pod(one, policy="Never", securityContext=context))
    assert simulated.status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code


@pytest.mark.parametrize(
    ("context", "ids"),
    [
        ({}, "uid=0(root) gid=0(root) groups=0(root)"),
        (
            {"runAsUser": 7, "runAsGroup": 500, "fsGroup": 2000, "supplementalGroups": [30]},
            "uid=7(lp) gid=500 groups=30,500,2000",
        ),
    ],
)
def test_command_has_groups_of_security_context(context, ids):
    one = container("c", "sh", "-c", f'[ "$(id)" = "{ids}" ] || exit 3')
    simulated = SimulatedPod(pod(one, policy="Never", securityContext=context))
    assert simulated.status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.parametrize(
    ("script", "fields", "message"),
    [
        pytest.param("echo -n DONE > /dev/termination-log", {}, "DONE", id="from the file"),
        pytest.param(
            "echo -n DONE > /tmp/end", {"terminationMessagePath": "/tmp/end"}, "DONE", id="from another file"
        ),
        pytest.param("echo DONE; exit 1", {}, None, id="not from the log"),
        pytest.param(
            "echo DONE; exit 1",
            {"terminationMessagePolicy": "FallbackToLogsOnError"},
            "DONE\n",
            id="from the log after an error",
        ),
        pytest.param(
            "echo DONE",
            {"terminationMessagePolicy": "FallbackToLogsOnError"},
            None,
            id="not without an error",
        ),
    ],
)
def test_termination_message_is_read(script, fields, message):
    context = node_context(config_maps={"m": {"data": {"a": "1"}}})
    simulated = SimulatedPod(
        pod(container("c", "sh", "-c", script, **fields), policy="Never"), context=context
    )
    assert simulated.status["containerStatuses"][0]["state"]["terminated"].get("message") == message


def test_agnhost_arguments_determine_phase():
    image = "registry.k8s.io/e2e-test-images/agnhost:2.59"
    for arguments, phase in ((["netexec"], "Running"), (["entrypoint-tester"], "Succeeded"), ([], "Running")):
        simulated = SimulatedPod(pod(container("c", image=image, args=arguments), policy="Never"))
        assert simulated.status["phase"] == phase


def test_container_that_cannot_be_created_waits():
    env = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a']"}}}]
    mounts = [{"name": "v", "mountPath": "/v", "subPathExpr": "$(A)"}]
    simulated = SimulatedPod(pod(container("c", env=env, volumeMounts=mounts)))
    assert simulated.status["phase"] == "Pending"
    assert simulated.status["containerStatuses"][0]["state"] == {
        "waiting": {"message": "missing value for A", "reason": "CreateContainerConfigError"}
    }
    writes = simulated.writes
    simulated.step_until_idle()
    assert simulated.writes == writes
    simulated.pod = with_metadata(simulated.pod, annotations={"a": "x"})
    simulated.step_until_idle()
    assert simulated.status["phase"] == "Running"


def test_next_run_sees_files_in_volume():
    script = "if [[ -r /data/foo ]]; then exit 0; else touch /data/foo; exit 1; fi"
    mounted = container("c", "sh", "-c", script, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    simulated = SimulatedPod(pod(mounted, policy="OnFailure"))
    assert simulated.status["phase"] == "Succeeded"
    assert simulated.status["containerStatuses"][0]["restartCount"] == 1


def writer(name, script, context, **mount):
    return container(name, "sh", "-c", script, volumeMounts=[{"name": "v", "mountPath": context, **mount}])


def exit_code_of(one, *init, **fields):
    """Return the exit code of a container that runs after init containers."""
    simulated = SimulatedPod(
        pod(one, policy="Never", initContainers=[*init], volumes=[{"name": "v", "emptyDir": {}}], **fields)
    )
    return simulated.status["containerStatuses"][0]["state"].get("terminated", {}).get("exitCode")


def test_files_of_init_containers_are_in_volumes():
    first, second = writer("i", "echo 3 > /a/code", "/a"), writer("j", "echo 4 >> /b/code; rm -f /b/x", "/b")
    assert exit_code_of(writer("c", "cat /c/code", "/c")) == 1
    assert exit_code_of(writer("c", "cat /c/code", "/c"), first) == 0
    assert exit_code_of(writer("c", "exit $(tail -n 1 /c/code)", "/c"), first, second) == 4
    assert exit_code_of(writer("c", "exit $(tail -n 1 /c/code)", "/c"), second, first) == 3
    assert exit_code_of(writer("c", "cat /c/code", "/c", subPath="s"), first) == 1


@pytest.mark.thorough
def test_many_init_containers_take_linear_time():
    init = [writer(f"i{number}", f"echo {number} >> /a/code", "/a") for number in range(40)]
    assert exit_code_of(writer("c", "exit $(wc -l < /c/code)", "/c"), *init) == 40
