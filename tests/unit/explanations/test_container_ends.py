"""What is said of a container that waits, has ended or is not ready, by its status, its probes, its memory and its log."""

import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import condition, event, facts_of, node_of, pod_of, resource_of, thing
from tests.support.told import evidence_of, told

INITIALIZED = condition("Initialized", "True")
AT, LATER = "2026-01-31T11:50:00Z", "2026-01-31T11:55:00Z"
OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-db", "controller": True}
OF_DB = {"ownerReferences": [OWNER]}
LIVENESS = {"livenessProbe": {"httpGet": {"path": "/x", "port": 80}}}
STARTUP = {"startupProbe": {"tcpSocket": {"port": 81}}}


def pod(state, container=(), *, last=None, restarts=0, started=None, resources=None, **spec):
    status = {"name": "c", "ready": False, "restartCount": restarts, "state": state}
    if last:
        status["lastState"] = {"terminated": last}
    if started is not None:
        status["started"] = started
    if resources:
        status["resources"] = resources
    fields = {"containerStatuses": [status], "conditions": [INITIALIZED], "phase": "Running"}
    return pod_of(status=fields, container=dict(container), **spec)


def ended(code=1, reason="Error", **fields):
    return {"exitCode": code, "reason": reason, "startedAt": AT, "finishedAt": LATER, **fields}


def waits(reason, message=""):
    return {"waiting": {"reason": reason, "message": message}}


def terminated(*arguments, **fields):
    return {"terminated": ended(*arguments, **fields)}


BACK_OFF = waits("CrashLoopBackOff", "back-off 10s")
PRINTED, PREVIOUS = "- kubectl -n default logs web -c c", "- kubectl -n default logs web -c c --previous"
OF_CONTAINER = "@ pod/web spec.containers[c]"
FAILED = "Explained: the container c ended with exit code 1: its own program failed"
NEVER = {"restartPolicy": "Never"}
ALWAYS = "- Give it a command that runs until it is stopped, or run it as a Job if it has to end."
LIMIT = {"resources": {"limits": {"memory": "1Gi"}}}
KILLED = "Explained: the container c was killed because it used more memory than its limit of 1Gi (OOMKilled)"
RESIZE = """- kubectl -n default patch pod/web --subresource=resize -p '{"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":"2Gi"}}}]}}'"""
REPLACED = "- Raise the limit, such as to 2Gi, in a Pod that replaces web."
OF_RESOURCES = f"{OF_CONTAINER}.resources"
LOST = "its node or container runtime lost it, as after a restart"
OOM = ended(137, "OOMKilled")

ENDS = {
    "its program failed": (pod(terminated()), [FAILED, PRINTED, OF_CONTAINER]),
    "its program failed, and is started again": (
        pod(BACK_OFF, last=ended(), restarts=3),
        [f"{FAILED}, and has been restarted 3 times", PREVIOUS, OF_CONTAINER],
    ),
    "it ended as it should, and is started again": (
        pod(terminated(0, "Completed")),
        [
            "Explained: the container c ends by itself with exit code 0, and restartPolicy Always starts it again",
            ALWAYS,
            PRINTED,
            OF_CONTAINER,
        ],
    ),
    "how it ended is not recorded": (
        pod(BACK_OFF),
        ["Unknown: the container c is restarted after a back-off; how it ended is not recorded"],
    ),
    "it cannot be started, and the message is of now": (
        pod(waits("RunContainerError", "no such file")),
        ["Explained: the container c cannot be started: no such file"],
    ),
    "it cannot be started, without a message": (
        pod(waits("RunContainerError")),
        ["Unknown: the container c is restarted after a back-off; how it ended is not recorded"],
    ),
    **{
        f"it cannot be started, {reason}": (
            pod(BACK_OFF, {"command": ["x"]}, last=ended(128, reason, message="m")),
            [
                "Explained: the container c cannot be started: m",
                "- Correct command and args in a pod that replaces it, or the image.",
                f"{OF_CONTAINER}.command",
            ],
        )
        for reason in ("StartError", "ContainerCannotRun")
    },
    "it cannot be started, by the command of its image": (
        pod(BACK_OFF, last=ended(128, "StartError")),
        [
            "Unknown: the container c cannot be started: without a message",
            "- Correct command and args in a pod that replaces it, or the image.",
            OF_CONTAINER,
        ],
    ),
    "it was lost": (
        pod(terminated(137, "ContainerStatusUnknown")),
        [
            f"Unknown: the container c ended with exit code 137, reason ContainerStatusUnknown: {LOST}",
            PRINTED,
            OF_CONTAINER,
        ],
    ),
    "a signal": (
        pod(terminated(143)),
        [
            "Unknown: the container c ended with exit code 143, as after SIGTERM; who sent the signal is not recorded",
            PRINTED,
            OF_CONTAINER,
        ],
    ),
    "a signal that is reported": (
        pod(terminated(137, signal=9)),
        [
            "Unknown: the container c ended with exit code 137, as after SIGKILL; who sent the signal is not recorded",
            PRINTED,
            OF_CONTAINER,
        ],
    ),
    "an exit code that is no signal": (
        pod(terminated(128)),
        [FAILED.replace("code 1", "code 128"), PRINTED, OF_CONTAINER],
    ),
    "another exit code that is no signal": (
        pod(terminated(200)),
        [FAILED.replace("code 1", "code 200"), PRINTED, OF_CONTAINER],
    ),
    "memory ran out": (
        pod({"terminated": OOM}),
        [
            "Explained: the container c was killed because memory ran out (OOMKilled), without a limit of its own",
            PRINTED,
            OF_RESOURCES,
        ],
    ),
    "its limit of memory": (
        pod({"terminated": OOM}, LIMIT),
        [KILLED, RESIZE, REPLACED, PRINTED, OF_RESOURCES],
    ),
    "its limit of memory, and it is not started again": (
        pod({"terminated": OOM}, LIMIT, **NEVER),
        [KILLED, REPLACED, PRINTED, OF_RESOURCES],
    ),
    "its limit of memory, and a controller": (
        pod({"terminated": OOM}, LIMIT, metadata=OF_DB),
        [
            KILLED,
            "- kubectl -n default set resources statefulset/db --containers=c --limits=memory=2Gi",
            PRINTED,
            "@ statefulset/db spec.template.spec.containers[c].resources",
        ],
    ),
    "its limit of memory is its request": (
        pod(
            {"terminated": OOM},
            {"resources": {**LIMIT["resources"], "requests": {"memory": "1Gi"}}},
            metadata=OF_DB,
        ),
        [
            KILLED,
            "- kubectl -n default set resources statefulset/db --containers=c --limits=memory=2Gi --requests=memory=2Gi",
            PRINTED,
            "@ statefulset/db spec.template.spec.containers[c].resources",
        ],
    ),
    "a resize that is not carried out": (
        pod({"terminated": OOM}, LIMIT, resources={"limits": {"memory": "512Mi"}}),
        [
            "Explained: the container c was killed because it used more memory than its limit of 512Mi (OOMKilled); its resize to 1Gi is not carried out",
            PRINTED,
            OF_RESOURCES,
        ],
    ),
    "a resize that is carried out": (
        pod({"terminated": OOM}, LIMIT, resources={"limits": {"memory": "1024Mi"}}),
        [KILLED, RESIZE, REPLACED, PRINTED, OF_RESOURCES],
    ),
    "it has not begun": (
        pod({}),
        ["Unknown: the kubelet has not reported the container c"],
    ),
    "it waits for an unknown reason": (pod(waits("Odd", "m")), ["Explained: the container c waits: Odd: m"]),
    "it waits for no reason": (pod(waits("")), ["Unknown: the container c waits: without a reason"]),
    "it runs and is not ready, without a probe": (
        pod({"running": {}}),
        ["Unknown: the container c runs and is not ready, but has no probe that would say why"],
    ),
}


@pytest.mark.parametrize(("tree", "lines"), ENDS.values(), ids=ENDS)
def test_container(tree, lines):
    assert told(explain(resource_of(tree), tree, facts_of(tree, node_of()))) == lines


# --- probes


def killing(probe="liveness", name="c", time=LATER):
    return "Killing", f"Container {name} failed {probe} probe, will be restarted", time, ""


def unhealthy(probe="Liveness", time=LATER, container="c"):
    return "Unhealthy", f"{probe} probe failed: no", time, container


PROBED = pod(BACK_OFF, {**LIVENESS, **STARTUP}, last=ended(137), restarts=1)
OF_PROBE = "is killed because its {} probe fails"
OWN, SIGNAL = "ended with exit code 1: its own program failed", "as after SIGKILL"


@pytest.mark.parametrize(
    ("tree", "events", "cause", "field"),
    [
        (PROBED, [killing()], OF_PROBE.format("liveness"), "livenessProbe"),
        (PROBED, [killing("startup")], OF_PROBE.format("startup"), "startupProbe"),
        (
            PROBED,
            [killing(), unhealthy()],
            "its liveness probe fails: Liveness probe failed: no",
            "livenessProbe",
        ),
        (PROBED, [killing(time="2026-01-31T11:49:59Z")], SIGNAL, ""),
        (PROBED, [killing(time=AT)], OF_PROBE.format("liveness"), "livenessProbe"),
        (PROBED, [killing(name="other")], SIGNAL, ""),
        (PROBED, [("Killing", "Stopping container c", LATER, "")], SIGNAL, ""),
        (PROBED, [unhealthy()], OF_PROBE.format("liveness"), "livenessProbe"),
        (PROBED, [unhealthy("Startup")], OF_PROBE.format("startup"), "startupProbe"),
        (PROBED, [unhealthy("Readiness")], SIGNAL, ""),
        (PROBED, [unhealthy(container="other")], SIGNAL, ""),
        (PROBED, [unhealthy(time="2026-01-31T11:54:29Z")], OF_PROBE.format("liveness"), "livenessProbe"),
        (PROBED, [unhealthy(time="2026-01-31T11:54:28Z")], SIGNAL, ""),
        (PROBED, [unhealthy(time="2026-01-31T11:49:59Z")], SIGNAL, ""),
        (pod(terminated(1), LIVENESS), [unhealthy()], OWN, ""),
        (pod(terminated(137, startedAt=None), LIVENESS), [unhealthy()], SIGNAL, ""),
        (pod(terminated(137, finishedAt=None), LIVENESS), [unhealthy()], SIGNAL, ""),
    ],
    ids=[
        "liveness",
        "startup",
        "with the failure",
        "before this run",
        "in the second of its start",
        "another container",
        "deleted",
        "a failure without a killing",
        "a failure of startup without a killing",
        "a failure of readiness",
        "a failure of another container",
        "within the grace period",
        "after the grace period",
        "a failure before this run",
        "another exit code",
        "no start",
        "no end",
    ],
)
def test_container_that_a_probe_may_have_ended(tree, events, cause, field):
    made = [event(tree, reason, text, time, container=container) for reason, text, time, container in events]
    found = told(explain(resource_of(tree), tree, facts_of(tree, node_of(), *made)))
    assert cause in found[0]
    assert found[-1] == (f"{OF_CONTAINER}.{field}" if field else OF_CONTAINER)


OLD_END = ended(1, startedAt="2026-01-31T10:00:00Z", finishedAt="2026-01-31T10:30:00Z")
EXPIRED = "is not known, because Events of that time have expired"
NO_EVENTS = "is not known without the right to list Events"


@pytest.mark.parametrize(
    ("container", "end", "refused", "cause"),
    [
        (LIVENESS, OLD_END, (), f"whether its liveness probe failed {EXPIRED}"),
        (STARTUP, OLD_END, (), f"whether its startup probe failed {EXPIRED}"),
        (
            {**LIVENESS, **STARTUP},
            ended(),
            ("events",),
            f"whether its liveness or startup probe failed {NO_EVENTS}",
        ),
        (LIVENESS, ended(), (), "its own program failed"),
        ({}, OLD_END, ("events",), "its own program failed"),
    ],
    ids=["liveness", "startup", "both", "lately", "no probe"],
)
def test_probe_of_which_nothing_is_known(container, end, refused, cause):
    tree = pod({"terminated": end}, container)
    assert cause in explain(resource_of(tree), tree, facts_of(tree, node_of(), refused=refused)).cause


RUNS = {"running": {"startedAt": AT}}
READINESS = {"readinessProbe": {"exec": {"command": ["a", "b"]}, "initialDelaySeconds": 5}}
GRPC = {"readinessProbe": {"grpc": {"port": 82}, "periodSeconds": 3}}


@pytest.mark.parametrize(
    ("container", "started", "events", "line", "field"),
    [
        (READINESS, None, [], "readiness probe of the container c (the command a b) has not succeeded", ""),
        (GRPC, None, [], "readiness probe of the container c (gRPC at port 82) has not succeeded", ""),
        ({"readinessProbe": {}}, None, [], "readiness probe of the container c (nothing) has not", ""),
        (
            {"readinessProbe": {"httpGet": {"port": 80}}},
            None,
            [unhealthy("Readiness")],
            "readiness probe of the container c (GET / at port 80) fails",
            "readinessProbe",
        ),
        (
            {**READINESS, **STARTUP},
            False,
            [unhealthy("Startup")],
            "startup probe of the container c (a connection to port 81) fails",
            "startupProbe",
        ),
        (
            {**READINESS, **STARTUP},
            True,
            [unhealthy("Startup")],
            "readiness probe of the container c (the command a b) has not succeeded",
            "",
        ),
    ],
    ids=["command", "grpc", "nothing", "http", "startup", "has started"],
)
def test_probe_that_fails(container, started, events, line, field):
    tree = pod(RUNS, container, started=started)
    made = [event(tree, reason, text, time, container=name) for reason, text, time, name in events]
    found = told(explain(resource_of(tree), tree, facts_of(tree, node_of(), *made)))
    assert line in found[0]
    assert found[1:] == (
        ["- kubectl -n default exec -it web -c c -- sh", f"{OF_CONTAINER}.{field}"] if field else []
    )


def test_time_of_a_probe_is_evidence():
    texts = [
        evidence_of(explain(resource_of(tree), tree, facts_of(tree, node_of())))[:2]
        for tree in (pod(RUNS, READINESS), pod(RUNS, GRPC))
    ]
    assert texts == [
        ["runs, ready is false", "it begins after 5 s, and repeats after 10 s"],
        ["runs, ready is false", "it begins after 0 s, and repeats after 3 s"],
    ]


def test_container_without_a_probe_that_was_restarted_is_explained_by_its_end():
    tree = pod(RUNS, last=ended(), restarts=1)
    assert FAILED in told(explain(resource_of(tree), tree, facts_of(tree, node_of())))[0]


@pytest.mark.parametrize("reason", ["Killing", "OOMKilling", "NotSimulated", "EndsAtOnce"])
def test_evidence_of_an_end(reason):
    tree = pod(BACK_OFF, last=ended(message="m", signal=6), restarts=1)
    about = event(tree, reason, "e"), event(tree, "Pulled", "p")
    found = evidence_of(
        explain(resource_of(tree), tree, facts_of(tree, node_of(), *about, logs={"c": "line"}))
    )
    assert found == [
        "ended with exit code 1, signal 6, reason Error: m",
        "waits: CrashLoopBackOff: back-off 10s",
        "e",
        "line",
    ]


# --- credentials of images


def pulled(*secrets):
    state = waits("ErrImagePull", "pull access denied")
    return pod(state, imagePullSecrets=[*secrets])


CREATE = "- kubectl -n default create secret docker-registry {} --docker-server=REGISTRY --docker-username=USER --docker-password=PASSWORD"


@pytest.mark.parametrize(
    ("secrets", "present", "remedy"),
    [
        ([], [], CREATE.format("registry")),
        ([{}], [], CREATE.format("registry")),
        ([{"name": "s"}], [], CREATE.format("s")),
        ([{"name": "s"}], ["s"], "- Check the credentials in the Secret s."),
        ([{"name": "s"}, {"name": "t"}], ["s"], CREATE.format("t")),
    ],
)
def test_credentials_of_an_image(secrets, present, remedy):
    tree = pulled(*secrets)
    objects = [thing("Secret", name) for name in present]
    assert told(explain(resource_of(tree), tree, facts_of(tree, node_of(), *objects)))[1] == remedy


# --- files that a log names, and where a pod is made of


@pytest.mark.parametrize(
    ("mount", "line", "origin"),
    [
        ({"mountPath": "/etc/a"}, "bad /etc/a/k: no", "@ configmap/conf data.k"),
        ({"mountPath": "/etc/a"}, "bad /etc/a/b", "@ configmap/conf binaryData.b"),
        ({"mountPath": "/etc/a/f", "subPath": "k"}, "bad /etc/a/f", "@ configmap/conf data.k"),
        ({"mountPath": "/etc/a/f", "subPath": "other"}, "bad /etc/a/f", "@ configmap/conf data.other"),
        ({"mountPath": "/etc/a"}, "bad /etc/a/kk", OF_CONTAINER),
    ],
    ids=["key", "binary key", "sub-path", "another sub-path", "longer path"],
)
@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_file_that_a_log_names(kind, mount, line, origin):
    source = {"configMap": {"name": "conf"}} if kind == "ConfigMap" else {"secret": {"secretName": "conf"}}
    data = {"data": {"k": "v"}, "binaryData": {"b": "v"}}
    tree = pod(terminated(), {"volumeMounts": [{"name": "v", **mount}]}, volumes=[{"name": "v", **source}])
    facts = facts_of(tree, node_of(), thing(kind, "conf", **data), logs={"c": line})
    found = told(explain(resource_of(tree), tree, facts))
    assert next(each for each in found if each.startswith("@")) == origin.replace("configmap", kind.lower())


def controlled(kind, name, api_version="apps/v1"):
    return {"kind": kind, "name": name, "apiVersion": api_version, "uid": f"uid-{name}", "controller": True}


@pytest.mark.parametrize(
    ("of_pod", "above", "origin"),
    [
        (
            controlled("ReplicaSet", "r"),
            controlled("Deployment", "d"),
            "@ deployment/d spec.template.spec.containers[c]",
        ),
        (controlled("ReplicaSet", "r"), None, "@ replicaset/r spec.template.spec.containers[c]"),
        (
            controlled("Job", "j", "batch/v1"),
            controlled("CronJob", "o", "batch/v1"),
            "@ cronjob/o spec.jobTemplate.spec.template.spec.containers[c]",
        ),
        (
            controlled("StatefulSet", "s"),
            controlled("Other", "x"),
            "@ statefulset/s spec.template.spec.containers[c]",
        ),
    ],
)
def test_field_of_a_pod_is_that_of_what_it_is_made_of(of_pod, above, origin):
    tree = pod(terminated(), metadata={"ownerReferences": [of_pod]})
    owners = {"ownerReferences": [above]} if above else {}
    owner = thing(of_pod["kind"], of_pod["name"], api_version=of_pod["apiVersion"], metadata=owners)
    assert told(explain(resource_of(tree), tree, facts_of(tree, node_of(), owner)))[-1] == origin


# --- init containers

INIT_RUNS = {"name": "i", "state": {"running": {}}}
INIT_ENDED = {"name": "i", "state": terminated()}


def with_init(status, *, policy=None, conditions=()):
    spec = {"name": "i", "image": "x", **({"restartPolicy": policy} if policy else {})}
    fields = {"initContainerStatuses": [status], "conditions": [*conditions], "phase": "Pending"}
    return pod_of(status=fields, initContainers=[spec])


@pytest.mark.parametrize(
    ("tree", "cause"),
    [
        (
            with_init(INIT_RUNS),
            "the init container i (1 of 1) runs and has not ended: the containers wait for it",
        ),
        (with_init(INIT_ENDED), "the container i ended with exit code 1: its own program failed"),
        (
            with_init(INIT_RUNS, policy="Always"),
            "the container i runs and is not ready, but has no probe that would say why",
        ),
        (
            with_init({"name": "i", "state": {"terminated": ended(0, "Completed")}}, policy="Always"),
            "the container i ends by itself with exit code 0, and restartPolicy Always starts it again",
        ),
        (
            with_init(INIT_ENDED, conditions=[INITIALIZED]),
            "the kubelet of a has not reported the pod's containers",
        ),
    ],
    ids=["runs", "failed", "sidecar", "sidecar that ended", "initialized"],
)
def test_init_container(tree, cause):
    assert explain(resource_of(tree), tree, facts_of(tree, node_of())).cause == cause


REJECTED = {
    "SysctlForbidden": "securityContext.sysctls",
    "AppArmor": "securityContext.appArmorProfile",
    "NodeAffinity": "affinity",
    "PodFeatureUnsupported": "os",
    "PodOSNotSupported": "os",
    "PodOSSelectorNodeLabelDoesNotMatch": "os",
}


@pytest.mark.parametrize(("reason", "field"), REJECTED.items())
def test_pod_that_a_kubelet_rejects_names_the_field(reason, field):
    tree = pod_of(status={"phase": "Failed", "reason": reason, "message": "m"}, metadata=OF_DB)
    found = told(explain(resource_of(tree), tree, facts_of(tree, node_of())))
    name = field.rpartition(".")[2]
    assert found == [
        f"Explained: the pod failed: {reason}: m",
        f"- Change {name} in the pod's template.",
        f"@ statefulset/db spec.template.spec.{field}",
    ]


HOOK = {"lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", "exit 3"]}}}}


@pytest.mark.parametrize(
    ("time", "cause"),
    [
        (LATER, "the container c is killed because its postStart hook fails: the command sh -c exit 3"),
        (
            "2026-01-31T11:00:00Z",
            "the container c ended with exit code 137, as after SIGKILL; who sent the signal is not recorded",
        ),
    ],
    ids=["of this run", "of a run before"],
)
def test_post_start_hook_that_failed_is_named(time, cause):
    tree = pod(terminated(137), HOOK)
    failed = event(tree, "FailedPostStartHook", "PostStartHook failed", time, container="c")
    found = explain(resource_of(tree), tree, facts_of(tree, node_of(), failed))
    assert found.cause == cause
    assert (told(found)[-1] == f"{OF_CONTAINER}.lifecycle.postStart") is (time == LATER)


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_sub_path_that_is_no_key_is_named_with_the_key_that_is_meant(kind):
    source = {"configMap": {"name": "conf"}} if kind == "ConfigMap" else {"secret": {"secretName": "conf"}}
    mount = {"name": "v", "mountPath": "/etc/nginx/nginx.conf", "subPath": "ngnix.conf"}
    tree = pod(terminated(128, "StartError"), {"volumeMounts": [mount]}, volumes=[{"name": "v", **source}])
    facts = facts_of(tree, node_of(), thing(kind, "conf", data={"nginx.conf": "v"}))
    found = told(explain(resource_of(tree), tree, facts))
    assert found[0] == (
        "Explained: the container c ended with exit code 128: subPath of the mount at /etc/nginx/nginx.conf needs the key ngnix.conf of "
        f"the {kind} conf, which has no such key"
    )
    assert found[1] == "- Name the key nginx.conf, which it has, in pod/web."


def test_sub_path_that_is_a_path_of_an_item_is_no_problem():
    source = {"configMap": {"name": "conf", "items": [{"key": "a", "path": "b/c"}]}}
    mounts = [{"name": "v", "mountPath": "/x", "subPath": each} for each in ("b", "b/c")]
    tree = pod(terminated(), {"volumeMounts": mounts}, volumes=[{"name": "v", **source}])
    found = told(explain(resource_of(tree), tree, facts_of(tree, node_of(), thing("ConfigMap", "conf"))))
    assert found[0] == FAILED
