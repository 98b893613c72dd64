"""Random pods, and what happens to each while time passes, users change it and it is deleted; a record has a digest of each step.

python -m tests.support.controllers.random_pods     # write the record
python -m tests.support.controllers.random_pods 17  # print the life of a pod, to compare it before and after a change
"""

import sys
from pathlib import Path

import orjson

from mockube.container_runtime.simulated.image_service import SimulatedImages
from tests.support.controllers.pods import NodeWithImages, SimulatedPod, container, node_context, pod
from tests.support.controllers.random_inputs import Inputs, digests
from tests.support.images import IMAGES

RECORD = Path(__file__).parents[2] / "unit/kubelet/random_pods.json"
PODS, STEPS = 160, 8
SCRIPTS = (
    "sleep 5; exit 3", "exit 0", "exit 1", "sleep 1000", "while true; do echo x; sleep 10; done", "trap 'exit 7' TERM; sleep 1000 & wait",
    "trap '' TERM; sleep 1000", "echo ok > /tmp/ok; sleep 20; rm /tmp/ok; sleep 1000", "cat /config/a || exit 4", "nosuchprogram", "echo $V $(V)",
    "touch /data/x && sleep 30", "test -f /data/x", "id -u; kill -9 $$", "nc -l -p 80",
)  # fmt: skip
ANNOTATIONS = {
    "crash-times": ("1", "2", "x"), "exit-after": ("5", "30s", "-1"), "fail-readiness-after": ("5",), "fail-start": ("true", "CreateContainerError"),
    "hang-terminating": ("true",), "ready-after": ("5", "1m", "never"), "startup-after": ("5",), "terminate-after": ("5", "60"),
    "waiting-reason": ("ImagePullBackOff", "X"), "resize-after": ("5",), "fail-with-code": ("9",), "run": ("sleep 3",),
}  # fmt: skip
QUANTITIES = ("100m", "1", "3", "8")
MEMORY = ("16Mi", "64Mi", "1Gi")


def _handler(inputs):
    return inputs.choose(
        {"exec": {"command": ["cat", "/tmp/ok"]}},
        {"exec": {"command": ["sh", "-c", inputs.choose("exit 1", "true", "sleep 3", "nosuch")]}},
        {"httpGet": {"port": inputs.choose(80, 8080, "web", 81), "path": inputs.choose("/", "/x")}},
        {"tcpSocket": {"port": inputs.choose(80, 9999)}},
        {"grpc": {"port": 80}},
    )


def _probe(inputs):
    times = {
        "initialDelaySeconds": (0, 3),
        "periodSeconds": (1, 10),
        "timeoutSeconds": (1, 5),
        "failureThreshold": (1, 3),
    }
    return _handler(inputs) | inputs.fields(**times, terminationGracePeriodSeconds=(1, 10))


def _hook(inputs):
    return inputs.choose(_handler(inputs), {"sleep": {"seconds": inputs.choose(1, 5, 60)}})


def _variable(inputs):
    source = inputs.choose("configMapKeyRef", "secretKeyRef")
    reference = {"name": inputs.choose("a", "gone"), "key": inputs.choose("a", "b")} | inputs.fields(
        optional=(True, False)
    )
    return inputs.choose({"name": "V", "value": "v"}, {"name": "V", "valueFrom": {source: reference}})


def _container(inputs, name, *, is_init=False):
    fields = {}
    if inputs.choose(1, 0):
        fields["resources"] = {
            each: inputs.fields(cpu=QUANTITIES, memory=MEMORY) for each in inputs.some("requests", "limits")
        }
    if not is_init:
        for probe in inputs.some("readinessProbe", "livenessProbe", "startupProbe"):
            if inputs.choose(1, 0, 0):
                fields[probe] = _probe(inputs)
        hooks = {name: _hook(inputs) for name in inputs.some("postStart", "preStop")}
        fields |= inputs.choose({}, {}, {"lifecycle": hooks})
    elif inputs.choose(1, 0, 0):
        fields |= {"restartPolicy": "Always"} | inputs.choose({}, {"startupProbe": _probe(inputs)})
    fields |= inputs.choose(
        {},
        {},
        {"env": [_variable(inputs)]},
        {"envFrom": [{"configMapRef": {"name": inputs.choose("a", "gone")}}]},
    )
    fields |= inputs.choose(
        {},
        {},
        {
            "volumeMounts": [
                {"name": inputs.choose("data", "config"), "mountPath": inputs.choose("/data", "/config")}
            ]
        },
    )
    fields |= inputs.choose(
        {},
        {},
        {
            "securityContext": inputs.fields(
                runAsUser=(0, 1000), runAsNonRoot=(True,), readOnlyRootFilesystem=(True,)
            )
        },
    )
    fields |= inputs.fields(
        ports=([{"name": "web", "containerPort": 80}],), imagePullPolicy=("Always", "Never", "IfNotPresent")
    )
    fields |= inputs.choose({}, {}, {"terminationMessagePolicy": "FallbackToLogsOnError"})
    image = inputs.choose(
        "busybox",
        "busybox",
        "busybox",
        "nginx:1.25",
        "redis",
        "postgres",
        "app",
        "nosuch.example/x:1",
        "UPPER",
    )
    script = inputs.choose(*SCRIPTS)
    command = (
        ()
        if image == "nginx:1.25" or inputs.choose(1, 0, 0)
        else inputs.choose(
            ("sh", "-c", script), ("sh", "-c", script), ("sleep", "20"), ("nosuch",), ("false",)
        )
    )
    return container(name, *command, image=image, **fields)


def _pod(inputs):
    volumes = [
        {
            "name": "data",
            **inputs.choose(
                {"emptyDir": {}},
                {"emptyDir": {"medium": "Memory"}},
                {"hostPath": {"path": "/x", "type": inputs.choose("Directory", "DirectoryOrCreate", "")}},
            ),
        },
        {
            "name": "config",
            **inputs.choose(
                {"configMap": {"name": inputs.choose("a", "gone")}},
                {"secret": {"secretName": "a", "items": [{"key": inputs.choose("a", "b"), "path": "a"}]}},
            ),
        },
    ]
    annotations = {
        f"mockube.dev/{name}": inputs.choose(*ANNOTATIONS[name])
        for name in ANNOTATIONS
        if inputs.choose(1, *[0] * 12)
    }
    spec = inputs.fields(terminationGracePeriodSeconds=(0, 5, 30), hostNetwork=(None, True))
    spec |= inputs.choose({}, {}, {"activeDeadlineSeconds": inputs.choose(3, 50)})
    spec |= inputs.choose({}, {}, {"readinessGates": [{"conditionType": "example.com/g"}]})
    spec |= inputs.choose(
        {}, {}, {"securityContext": inputs.fields(runAsUser=(0, 1000), runAsNonRoot=(True,))}
    )
    return pod(
        *(_container(inputs, name) for name in inputs.choose(("c",), ("c",), ("c", "d"))),
        init=[_container(inputs, name, is_init=True) for name in inputs.choose((), (), ("i",), ("i", "j"))],
        annotations=annotations,
        labels=inputs.choose({}, {}, {"batch.kubernetes.io/job-name": "j"}),
        policy=inputs.choose("Always", "OnFailure", "Never"),
        volumes=volumes,
        **spec,
    )


def _change(inputs, simulated):
    """Let time pass, change the pod or delete it."""
    match inputs.choose("time", "time", "time", "time", "resize", "image", "gate", "annotate", "delete"):
        case "resize":
            first, *others = simulated.pod["spec"]["containers"]
            simulated.change(
                containers=[
                    {**first, "resources": {"requests": {"cpu": inputs.choose(*QUANTITIES)}}},
                    *others,
                ]
            )
        case "image":
            first, *others = simulated.pod["spec"]["containers"]
            simulated.change(containers=[{**first, "image": "nginx:1.26"}, *others])
        case "gate":
            gate = {"type": "example.com/g", "status": inputs.choose("True", "False")}
            status = simulated.pod["status"]
            simulated.pod = {
                **simulated.pod,
                "status": {**status, "conditions": [*status["conditions"], gate]},
            }
            simulated.step_until_idle()
        case "annotate":
            simulated.annotate(
                **{inputs.choose("terminate_after", "ready_after", "exit_after"): inputs.choose("1", "20")}
            )
        case "delete":
            simulated.delete(grace=inputs.choose(0, 1, 30))
    simulated.pass_time(inputs.choose(0, 1, 5, 12, 60, 400))


def life(number):
    """Return the pod and its status after each step."""
    inputs = Inputs(f"pod {number}")
    context = node_context(
        details=inputs.flag(),
        used={"cpu": inputs.choose("0", "2")},
        limits_resizes=inputs.flag(),
        config_maps={"a": {"data": {"a": "1"}}},
        secrets={"a": {"data": {"a": "MQ=="}}},
    )
    node = inputs.choose(
        None, NodeWithImages(service=SimulatedImages(IMAGES), kubelet_minor=inputs.choose(37, 33))
    )
    subject = _pod(inputs)
    lines = [repr(subject)]
    simulated = SimulatedPod(subject, context=context, node=node)
    for _ in range(STEPS):
        _change(inputs, simulated)
        events = [(event.reason, event.message) for event in simulated.events]
        lines.append(repr((simulated.status, events, simulated.due, simulated.removed, simulated.writes)))
    return lines


def main():
    if sys.argv[1:]:
        sys.stdout.writelines(f"{line}\n" for number in sys.argv[1:] for line in life(int(number)))
        return
    record = [" ".join(digests(life(number))) for number in range(PODS)]
    RECORD.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
