"""What is said of a pod without a node by the recorded verdict, the nodes as they are now, its claims and its gates."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.explanations.catalog import explain
from tests.support.explained import condition, facts_of, node_of, pod_of, resource_of, thing
from tests.support.told import evidence_of, told

NAMESPACE = thing("Namespace", "default", namespace="")
NO_CPU, CORDON = "Insufficient cpu", "node(s) were unschedulable"
BIG = {"container": {"resources": {"requests": {"cpu": "8"}}}}


def waiting(*reasons, message=None, reason="Unschedulable", name="web", nominated="", **spec):
    """Return a pod that the scheduler has refused for some reasons."""
    text = f"0/1 nodes are available: {', '.join(reasons)}." if message is None else message
    status = {
        "conditions": [condition("PodScheduled", "False", reason, text)],
        "nominatedNodeName": nominated,
    }
    return pod_of(name, nodeName=None, status=status, **spec)


def claim(phase="Pending", *, of_class="fast", name="data", **annotations):
    spec = {"storageClassName": of_class, "resources": {"requests": {"storage": "1Gi"}}, "accessModes": []}
    metadata = {"annotations": annotations}
    return thing("PersistentVolumeClaim", name, metadata=metadata, spec=spec, status={"phase": phase})


def storage_class(mode):
    fields = {"provisioner": "a.b/c", "volumeBindingMode": mode}
    return thing("StorageClass", "fast", api_version="storage.k8s.io/v1", namespace="", **fields)


def volume_of(name="data"):
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


ADD_NODES = "- Or add nodes that are large enough: `mockube nodes --help`."
TOO_BIG = "none of {} nodes can take the pod: Insufficient cpu ({})"
BIG_REMEDIES = [
    "- Request at most 4 of cpu, which a has free, or end pods there.",
    ADD_NODES,
    "@ pod/web spec.containers[c].resources",
]
ONLY = "Explained: the only node cannot take the pod: Insufficient cpu (1); a: cpu: requests 8, free 4 of 4"
GATES = [{"name": "x/y"}, {"name": "z"}]
REMOVE_GATES = (
    """- kubectl -n default patch pod/web --type=json -p '[{"op":"remove","path":"/spec/schedulingGates"}]'"""
)
SCHEDULE = """- kubectl -n default patch pod/web -p '{"spec":{"schedulerName":"default-scheduler"}}'"""
CLAIM_GONE = waiting(message='persistentvolumeclaim "data" not found', **volume_of())
CLAIM_WAITS = waiting(message="pod has unbound immediate PersistentVolumeClaims", **volume_of())
WHY_CLAIM = "- mockube why persistentvolumeclaim/data -n default"

UNBOUND = "Explained: no node can take the pod: pod has unbound immediate PersistentVolumeClaims; the PersistentVolumeClaim data is not bound"
PODS = {
    "gates": (
        waiting(schedulingGates=GATES),
        [],
        [
            "Explained: the pod is not scheduled until its scheduling gates are removed: x/y, z",
            REMOVE_GATES,
            "@ pod/web spec.schedulingGates",
        ],
    ),
    "no scheduler has looked": (
        pod_of(nodeName=None),
        [],
        ["Unknown: no scheduler has tried the pod yet: default-scheduler does not run, or is not there yet"],
    ),
    "another scheduler has not looked": (
        pod_of(nodeName=None, schedulerName="mine"),
        [],
        [
            "Explained: no scheduler has tried the pod: its schedulerName is mine, and no scheduler of that name runs; mockube runs default-scheduler, and others only with a profile of that name",
            "- Let default-scheduler schedule it:",
            "- Or start the scheduler mine, or create the pod anew without spec.schedulerName.",
            "@ pod/web spec.schedulerName",
        ],
    ),
    "another scheduler found no node": (
        waiting(message="no", schedulerName="mine"),
        [node_of()],
        ["Explained: mine found no node: no"],
    ),
    "another scheduler gave a reason": (
        waiting(message="", reason="Busy", schedulerName="mine"),
        [],
        ["Explained: mine found no node: Busy"],
    ),
    "another scheduler said nothing": (
        waiting(message="", reason="", schedulerName="mine"),
        [],
        ["Explained: mine found no node: without a message"],
    ),
    "the only node is too small": (waiting(NO_CPU, **BIG), [node_of()], [ONLY, *BIG_REMEDIES]),
    "two nodes are too small": (
        waiting(NO_CPU, **BIG),
        [node_of(), node_of("b", cpu="2")],
        [f"Explained: {TOO_BIG.format(2, 2)}; a: cpu: requests 8, free 4 of 4", *BIG_REMEDIES],
    ),
    "the reasons of then are others": (
        waiting(CORDON, **BIG),
        [node_of()],
        [f"Explained: the scheduler found no node: 0/1 nodes are available: {CORDON}.", *BIG_REMEDIES],
    ),
    "a reason of then without a message": (
        waiting(message="", reason="SchedulerError", **BIG),
        [node_of()],
        ["Explained: the scheduler found no node: SchedulerError", *BIG_REMEDIES],
    ),
    "a node is free now": (
        waiting(NO_CPU),
        [node_of(), node_of("b")],
        [
            "Unknown: the plugins of the default profile accept the pod now on 2 nodes, such as a, b: the scheduler has not tried again, has a back-off, or has another profile"
        ],
    ),
    "a nominated pod needs the node": (
        waiting(NO_CPU, container={"resources": {"requests": {"cpu": "2"}}}),
        [
            waiting(
                NO_CPU,
                name="first",
                nominated="a",
                container={"resources": {"requests": {"cpu": "3"}}},
                priority=9,
            ),
            node_of(),
        ],
        [
            "Explained: the only node cannot take the pod: Insufficient cpu (1)",
            "- Add nodes that are large enough: `mockube nodes --help`.",
            "@ pod/web spec.containers[c].resources",
        ],
    ),
    "a nominated pod that has ended needs nothing": (
        waiting(NO_CPU, container={"resources": {"requests": {"cpu": "2"}}}),
        [
            {
                **waiting(name="first", priority=9, **BIG),
                "status": {"phase": "Failed", "nominatedNodeName": "a"},
            },
            node_of(),
        ],
        [
            "Unknown: the plugins of the default profile accept the pod now on 1 node, such as a: the scheduler has not tried again, has a back-off, or has another profile"
        ],
    ),
    "no nodes": (waiting(NO_CPU), [], ["Explained: the cluster has no nodes"]),
    "a claim does not exist": (
        CLAIM_GONE,
        [node_of()],
        [
            'Explained: no node can take the pod: persistentvolumeclaim "data" not found',
            "- Create the PersistentVolumeClaim data in default.",
            "@ persistentvolumeclaim/data",
            "@ pod/web spec.volumes",
        ],
    ),
    "a claim is not bound": (
        CLAIM_WAITS,
        [node_of(), claim(), storage_class("Immediate")],
        [
            f"{UNBOUND}: its phase is Pending",
            WHY_CLAIM,
            "@ persistentvolumeclaim/data",
        ],
    ),
    "the class of a claim does not exist": (
        CLAIM_WAITS,
        [node_of(), claim()],
        [
            f"{UNBOUND}: the StorageClass fast does not exist",
            "- Create the StorageClass fast.",
            WHY_CLAIM,
            "@ storageclass/fast",
            "@ persistentvolumeclaim/data spec.storageClassName",
            "@ persistentvolumeclaim/data",
        ],
    ),
    "a claim that waits for the pod is not the cause": (
        waiting(NO_CPU, **BIG, **volume_of()),
        [node_of(), claim(), storage_class("WaitForFirstConsumer")],
        [ONLY, *BIG_REMEDIES],
    ),
    "two nodes, of which one is cordoned": (
        waiting(NO_CPU, CORDON, **BIG),
        [node_of(), node_of("b", unschedulable=True)],
        [
            "Explained: none of 2 nodes can take the pod: Insufficient cpu (2), node(s) were unschedulable (1); a: cpu: requests 8, free 4 of 4",
            *BIG_REMEDIES,
        ],
    ),
}


@pytest.mark.parametrize(("pod", "objects", "lines"), PODS.values(), ids=PODS)
def test_pod_without_a_node(pod, objects, lines):
    found = explain(resource_of(pod), pod, facts_of(pod, NAMESPACE, *objects))
    said = told(found)
    texts = {f"- {each.command}": f"- {each.text}" for each in found.remedies}
    assert said == lines or [each if each in lines else texts.get(each, each) for each in said] == lines


OTHER_PLUGINS = "the pod names mine: its plugins are not known, so nodes are not judged again"
DEVICES = "devices of nodes are not judged again"


@pytest.mark.parametrize(
    ("spec", "evidence"),
    [
        ({"schedulerName": "mine"}, ["no", OTHER_PLUGINS]),
        ({"resourceClaims": [{"name": "gpu"}]}, ["no", DEVICES]),
        ({"schedulerName": "mine", "resourceClaims": [{"name": "gpu"}]}, ["no", OTHER_PLUGINS, DEVICES]),
    ],
    ids=["scheduler", "devices", "both"],
)
def test_verdict_that_is_not_judged_again_is_evidence_with_the_reason(spec, evidence):
    pod = waiting(message="no", **spec)
    assert evidence_of(explain(resource_of(pod), pod, facts_of(pod, NAMESPACE, node_of()))) == evidence


def test_pods_that_are_nominated_are_evidence():
    pod, other = waiting(NO_CPU, **BIG), waiting(NO_CPU, name="first", nominated="a")
    less = waiting(NO_CPU, name="less", nominated="a", priority=-1)
    found = explain(resource_of(pod), pod, facts_of(pod, other, less, NAMESPACE, node_of(), node_of("b")))
    assert evidence_of(found)[1:] == ["default/first waits for a, too"]


def test_own_nomination_is_evidence():
    pod = waiting(NO_CPU, nominated="a", **BIG)
    found = evidence_of(explain(resource_of(pod), pod, facts_of(pod, NAMESPACE, node_of())))
    assert found[1:] == ["the pod waits for a: pods that it preempts there have not ended"]
    pod = waiting(NO_CPU, **BIG)
    assert len(evidence_of(explain(resource_of(pod), pod, facts_of(pod, NAMESPACE, node_of())))) == 1


# --- the references of volumes and of variables


def config_map(**data):
    return thing("ConfigMap", "conf", data=data)


def secret(**fields):
    return thing("Secret", "conf", **fields)


CREATING = {
    "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}],
    "conditions": [condition("Initialized", "True")],
}
CONFIG_ERROR = {
    "containerStatuses": [
        {"name": "c", "state": {"waiting": {"reason": "CreateContainerConfigError", "message": "m"}}}
    ],
    "conditions": [condition("Initialized", "True")],
}
CREATE_MAP = "- kubectl -n default create configmap conf"
CREATE_SECRET = "- kubectl -n default create secret generic conf"
OF_VOLUME = "@ pod/web spec.volumes[v]"
UNKNOWN = "Unknown: the container c is being created; what it waits for is not recorded"


def item(key):
    return {"name": "conf", "items": [{"key": key, "path": "p"}]}


VOLUMES = {
    "a ConfigMap": (
        {"configMap": {"name": "conf"}},
        [],
        [
            "Explained: the volume v needs the ConfigMap conf, which does not exist",
            CREATE_MAP,
            "@ configmap/conf",
            OF_VOLUME,
        ],
    ),
    "a Secret": (
        {"secret": {"secretName": "conf"}},
        [config_map()],
        [
            "Explained: the volume v needs the Secret conf, which does not exist",
            CREATE_SECRET,
            "@ secret/conf",
            OF_VOLUME,
        ],
    ),
    "a projected source": (
        {"projected": {"sources": [{"configMap": {"name": "conf"}}]}},
        [],
        [
            "Explained: the volume v needs the ConfigMap conf, which does not exist",
            CREATE_MAP,
            "@ configmap/conf",
            OF_VOLUME,
        ],
    ),
    "a key of what does not exist": (
        {"configMap": item("k")},
        [],
        [
            "Explained: the volume v needs the ConfigMap conf, which does not exist",
            f"{CREATE_MAP} --from-literal=k=VALUE",
            "@ configmap/conf",
            OF_VOLUME,
        ],
    ),
    "an absent key": (
        {"configMap": item("k")},
        [config_map(x="y")],
        [
            "Explained: the volume v needs the key k of the ConfigMap conf, which has no such key",
            """- kubectl -n default patch configmap/conf --type=merge -p '{"data":{"k":"VALUE"}}'""",
            "@ configmap/conf data.k",
            OF_VOLUME,
        ],
    ),
    "an absent key of a Secret": (
        {"secret": {**item("k"), "name": None, "secretName": "conf"}},
        [secret()],
        [
            "Explained: the volume v needs the key k of the Secret conf, which has no such key",
            """- kubectl -n default patch secret/conf --type=merge -p '{"stringData":{"k":"VALUE"}}'""",
            "@ secret/conf data.k",
            OF_VOLUME,
        ],
    ),
    "a key": ({"configMap": item("k")}, [config_map(k="v")], [UNKNOWN]),
    "a binary key": (
        {"configMap": item("k")},
        [thing("ConfigMap", "conf", binaryData={"k": "v"})],
        [UNKNOWN],
    ),
    "an optional source": ({"configMap": {"name": "conf", "optional": True}}, [], [UNKNOWN]),
    "no claim": (
        {"persistentVolumeClaim": {"claimName": "data"}},
        [],
        [
            "Explained: the PersistentVolumeClaim data does not exist",
            "- Create the PersistentVolumeClaim data in default.",
            "@ persistentvolumeclaim/data",
            "@ pod/web spec.volumes",
        ],
    ),
    "an unbound claim": (
        {"persistentVolumeClaim": {"claimName": "data"}},
        [claim(), storage_class("WaitForFirstConsumer")],
        [
            "Explained: the PersistentVolumeClaim data is not bound: its phase is Pending",
            WHY_CLAIM,
            "@ persistentvolumeclaim/data",
        ],
    ),
    "a claim of the pod itself": (
        {"ephemeral": {}},
        [],
        [
            "Explained: the PersistentVolumeClaim web-v does not exist",
            "- Create the PersistentVolumeClaim web-v in default.",
            "@ persistentvolumeclaim/web-v",
            "@ pod/web spec.volumes",
        ],
    ),
    "a bound claim": (
        {"persistentVolumeClaim": {"claimName": "data"}},
        [claim("Bound")],
        [UNKNOWN],
    ),
}


@pytest.mark.parametrize(("source", "objects", "lines"), VOLUMES.values(), ids=VOLUMES)
def test_volume(source, objects, lines):
    pod = pod_of(status=CREATING, volumes=[{"name": "v", **source}])
    assert told(explain(resource_of(pod), pod, facts_of(pod, node_of(), *objects))) == lines


def variable(**source):
    return {"env": [{"name": "PLAIN", "value": "x"}, {"name": "A", "valueFrom": source}]}


OF_VARIABLE = "@ pod/web spec.containers[c].env[A]"
OF_ALL = "@ pod/web spec.containers[c].envFrom"
NO_PROBLEM = ["Explained: the container c cannot be created: m", "@ pod/web spec.containers[c]"]
KEY = {"name": "conf", "key": "k"}

VARIABLES = {
    "of a ConfigMap": (
        variable(configMapKeyRef=KEY),
        [],
        [
            "Explained: the container c, variable A, needs the ConfigMap conf, which does not exist",
            f"{CREATE_MAP} --from-literal=k=VALUE",
            "@ configmap/conf",
            OF_VARIABLE,
        ],
    ),
    "of a key of a Secret": (
        variable(secretKeyRef=KEY),
        [secret(data={"x": "y"})],
        [
            "Explained: the container c, variable A, needs the key k of the Secret conf, which has no such key",
            """- kubectl -n default patch secret/conf --type=merge -p '{"stringData":{"k":"VALUE"}}'""",
            "@ secret/conf data.k",
            OF_VARIABLE,
        ],
    ),
    "of a key that is there": (variable(secretKeyRef=KEY), [secret(data={"k": "y"})], NO_PROBLEM),
    "optional": (variable(configMapKeyRef={**KEY, "optional": True}), [], NO_PROBLEM),
    "of a field": (variable(fieldRef={"fieldPath": "metadata.name"}), [], NO_PROBLEM),
    **{
        f"all of a {kind}": (
            {"envFrom": [{field: {"name": "conf"}}]},
            [],
            [
                f"Explained: the container c needs the {kind} conf, which does not exist",
                create,
                f"@ {kind.lower()}/conf",
                OF_ALL,
            ],
        )
        for kind, field, create in (
            ("ConfigMap", "configMapRef", CREATE_MAP),
            ("Secret", "secretRef", CREATE_SECRET),
        )
    },
}


@pytest.mark.parametrize(("container", "objects", "lines"), VARIABLES.values(), ids=VARIABLES)
def test_variable(container, objects, lines):
    pod = pod_of(status=CONFIG_ERROR, container=container)
    assert told(explain(resource_of(pod), pod, facts_of(pod, node_of(), *objects))) == lines


@pytest.mark.parametrize(
    ("resource", "refused"),
    [
        (GroupResource("", "configmaps"), "configmaps"),
        (GroupResource("", "persistentvolumeclaims"), "persistentvolumeclaims"),
    ],
)
def test_object_that_may_not_be_read_is_not_said_to_be_missing(resource, refused):
    sources = [
        {"configMap": {"name": "conf", "items": [{"key": "k"}]}},
        {"persistentVolumeClaim": {"claimName": "data"}},
    ]
    volumes = [{"name": f"v{number}", **each} for number, each in enumerate(sources)]
    present = [config_map(k="v"), claim("Bound")]
    pod = pod_of(status=CREATING, volumes=volumes)
    found = explain(
        resource_of(pod), pod, facts_of(pod, node_of(), *present, refused=(str(resource), refused))
    )
    assert told(found) == [UNKNOWN]
