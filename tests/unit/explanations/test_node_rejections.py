"""What is said of each plugin of the scheduler that rejects a node: what the node lacks, the fields that decide, and what to change."""

import orjson
import pytest

from mockube.apimachinery.groups import PODS
from mockube.explanations.catalog import explain
from mockube.explanations.explanation import field_text
from tests.support.explained import condition, facts_of, node_of, pod_of, thing

REFUSED_POD = {"conditions": [condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")]}
WEB = {"app": "web"}
OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-db", "controller": True}
OF_DB = {"labels": WEB, "ownerReferences": [OWNER]}
RUNS = {"phase": "Running"}


def pending(*, metadata=(), **spec):
    head = {"labels": WEB, **dict(metadata)}
    return pod_of(nodeName=None, metadata=head, status=REFUSED_POD, **spec)


def running(name, node="a", *, labels=(), metadata=(), **spec):
    head = {"labels": dict(labels), **dict(metadata)}
    return pod_of(name, nodeName=node, metadata=head, status=RUNS, **spec)


def requests(**amounts):
    return {"resources": {"requests": amounts}}


def required_labels(*terms):
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    }


def expression(key, operator, *values):
    return {"key": key, "operator": operator, **({"values": [*values]} if values else {})}


def labels_of(*requirements):
    return required_labels({"matchExpressions": [*requirements]})


def port(number, **fields):
    return {"ports": [{"containerPort": number, "hostPort": number, "protocol": "TCP", **fields}]}


def near(field, key="kubernetes.io/hostname", **labels):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels or WEB}}
    return {field: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(key="zone", when="DoNotSchedule"):
    return {
        "topologyKey": key,
        "labelSelector": {"matchLabels": WEB},
        "maxSkew": 1,
        "whenUnsatisfiable": when,
    }


def taint(key, effect="NoSchedule", **value):
    return {"key": key, "effect": effect, **value}


NODE = node_of("a")
CORDONED = node_of("a", unschedulable=True)
IN_A, IN_B = node_of("a", labels={"zone": "x"}), node_of("b", labels={"zone": "y"})
ADD_NODES = "Or add nodes that are large enough: `mockube nodes --help`."
MORE_NODES = "Or add nodes, one for each pod: `mockube nodes --help`."
OTHER_PORT = "Or change hostPort in a pod that replaces it, or leave it out."
NO_SINGLE = "On no node does a single change help: the nearest one needs 2."
CHANGED_AFFINITY = "Change spec.affinity.nodeAffinity in a pod that replaces it."
PREFERRED = "Prefer the spread, and do not require it, in a Pod that replaces web."


def patch_of_db(spec):
    body = orjson.dumps({"spec": {"template": {"spec": spec}}}).decode()
    return f"kubectl -n default patch statefulset/db -p '{body}'"


def tolerated(**toleration):
    body = orjson.dumps({"spec": {"tolerations": [toleration]}}).decode()
    return f"kubectl -n default patch pod/web -p '{body}'"


REJECTIONS = {
    "resources: what the container requests and what pods leave": (
        pending(container=requests(cpu="2", memory="1Gi")),
        [running("other", container=requests(cpu="3")), NODE],
        ["a: cpu: requests 2, free 1 of 4"],
        ["Request at most 1 of cpu, which a has free, or end pods there.", ADD_NODES],
        ["pod/web spec.containers[c].resources"],
    ),
    "resources: a container without requests is no origin": (
        pending(
            containers=[{"name": "c", "image": "x", **requests(memory="9Gi")}, {"name": "d", "image": "x"}]
        ),
        [NODE],
        ["a: memory: requests 9Gi, free 8Gi of 8Gi"],
        ["Request at most 8Gi of memory, which a has free, or end pods there.", ADD_NODES],
        ["pod/web spec.containers[c].resources"],
    ),
    "resources: the template of a controller requests what is free": (
        pending(metadata=OF_DB, container=requests(cpu="5")),
        [NODE, node_of("b", cpu="4500m")],
        ["a: cpu: requests 5, free 4 of 4", "b: cpu: requests 5, free 4500m of 4500m"],
        [
            patch_of_db({"containers": [{"name": "c", "resources": {"requests": {"cpu": "4500m"}}}]}),
            ADD_NODES,
        ],
        ["statefulset/db spec.template.spec.containers[c].resources"],
    ),
    "resources: of two containers of a template, none is chosen": (
        pending(metadata=OF_DB, containers=[{"name": n, "image": "x", **requests(cpu="3")} for n in "cd"]),
        [NODE],
        ["a: cpu: requests 6, free 4 of 4"],
        ["Request at most 4 of cpu, which a has free, or end pods there.", ADD_NODES],
        [f"statefulset/db spec.template.spec.containers[{n}].resources" for n in "cd"],
    ),
    "resources: a request of nothing does not help on a full node": (
        pending(metadata=OF_DB, container=requests(cpu="1")),
        [running("other", container=requests(cpu="4")), NODE],
        ["a: cpu: requests 1, free 0 of 4"],
        ["Request at most 0 of cpu, which a has free, or end pods there.", ADD_NODES],
        ["statefulset/db spec.template.spec.containers[c].resources"],
    ),
    "taint: its key and effect are removed, and the pod may tolerate it": (
        pending(),
        [node_of("a", taints=[taint("team", value="x")])],
        ["a: team=x:NoSchedule"],
        [tolerated(key="team", effect="NoSchedule", value="x"), "kubectl taint nodes a team:NoSchedule-"],
        ["node/a spec.taints[team]"],
    ),
    "taint: one without a value is tolerated if it exists": (
        pending(metadata=OF_DB),
        [node_of("a", taints=[taint("team", "NoExecute")])],
        ["a: team:NoExecute"],
        [
            patch_of_db(
                {"tolerations": [{"key": "team", "effect": "NoExecute", "operator": "Exists"}]},
            ),
            "kubectl taint nodes a team:NoExecute-",
        ],
        ["node/a spec.taints[team]"],
    ),
    "taint: one that prefers other nodes rejects nothing": (
        pending(nodeSelector={"disk": "ssd"}),
        [node_of("a", taints=[taint("team", "PreferNoSchedule")])],
        ["a: lacks disk=ssd"],
        [
            "kubectl label node a disk=ssd --overwrite",
            "Or change spec.nodeSelector, in a Pod that replaces web.",
        ],
        ["pod/web spec.nodeSelector.disk", "node/a metadata.labels.disk"],
    ),
    **{
        f"taint: a controller sets {key} again": (
            pending(),
            [node_of("a", taints=[taint(f"node.kubernetes.io/{key}")])],
            [f"a: node.kubernetes.io/{key}:NoSchedule"],
            ["mockube why node/a"],
            [f'node/a spec.taints["node.kubernetes.io/{key}"]'],
        )
        for key in (
            "not-ready",
            "unreachable",
            "unschedulable",
            "memory-pressure",
            "disk-pressure",
            "pid-pressure",
            "network-unavailable",
        )
    },
    "taint: of two nodes, the first one is told how to accept the pod": (
        pending(),
        [node_of("a", taints=[taint("team")]), node_of("b", taints=[taint("gpu")])],
        ["a: team:NoSchedule", "b: gpu:NoSchedule"],
        [
            tolerated(key="team", effect="NoSchedule", operator="Exists"),
            "kubectl taint nodes a team:NoSchedule-",
        ],
        ["node/a spec.taints[team]", "node/b spec.taints[gpu]"],
    ),
    "cordon": (
        pending(),
        [CORDONED, node_of("b", unschedulable=True)],
        ["a: cordoned", "b: cordoned"],
        ["kubectl uncordon a"],
        ["node/a spec.unschedulable", "node/b spec.unschedulable"],
    ),
    "labels: those that the selector has and the node does not": (
        pending(nodeSelector={"disk": "ssd", "os": "linux", "size": "big"}),
        [node_of("a", labels={"os": "linux", "size": "small"})],
        ["a: lacks disk=ssd, size=big"],
        [
            "kubectl label node a disk=ssd size=big --overwrite",
            "Or change spec.nodeSelector, in a Pod that replaces web.",
        ],
        [
            "pod/web spec.nodeSelector.disk",
            "node/a metadata.labels.disk",
            "pod/web spec.nodeSelector.size",
            "node/a metadata.labels.size",
        ],
    ),
    "labels: the selector of a template": (
        pending(metadata=OF_DB, nodeSelector={"disk": "ssd"}),
        [NODE],
        ["a: lacks disk=ssd"],
        [
            "kubectl label node a disk=ssd --overwrite",
            patch_of_db({"nodeSelector": {"disk": None}}),
        ],
        ["statefulset/db spec.template.spec.nodeSelector.disk", "node/a metadata.labels.disk"],
    ),
    "affinity to labels: In takes the first value, Exists any": (
        pending(affinity=labels_of(expression("disk", "In", "ssd", "nvme"), expression("gpu", "Exists"))),
        [node_of("a", labels={"disk": "hdd"})],
        ["a: nodeAffinity needs disk In [ssd, nvme], and it has hdd; gpu Exists, and it has none"],
        ["kubectl label node a disk=ssd gpu=VALUE --overwrite", CHANGED_AFFINITY],
        ["pod/web spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"],
    ),
    "affinity to labels: what the node has is not named": (
        pending(affinity=labels_of(expression("disk", "Exists"), expression("gpu", "In", "a"))),
        [node_of("a", labels={"disk": "hdd"})],
        ["a: nodeAffinity needs gpu In [a], and it has none"],
        ["kubectl label node a gpu=a --overwrite", CHANGED_AFFINITY],
        ["pod/web spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"],
    ),
    "affinity to labels: one of two terms": (
        pending(
            affinity=required_labels(
                {"matchExpressions": [expression("disk", "In", "ssd")]},
                {"matchExpressions": [expression("gpu", "Exists")]},
            )
        ),
        [NODE],
        ["a: nodeAffinity needs disk In [ssd], and it has none, or gpu Exists, and it has none"],
        ["kubectl label node a disk=ssd --overwrite", CHANGED_AFFINITY],
        ["pod/web spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"],
    ),
    "affinity to labels: a label that must not be there is not added": (
        pending(affinity=labels_of(expression("gpu", "Exists"), expression("disk", "NotIn", "hdd"))),
        [node_of("a", labels={"disk": "hdd"})],
        ["a: nodeAffinity needs gpu Exists, and it has none; disk NotIn [hdd], and it has hdd"],
        [CHANGED_AFFINITY],
        ["pod/web spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"],
    ),
    "affinity to labels: a label is no name of a node": (
        pending(
            affinity=required_labels(
                {
                    "matchExpressions": [expression("gpu", "Exists")],
                    "matchFields": [expression("metadata.name", "In", "b")],
                }
            )
        ),
        [NODE, node_of("b")],
        [
            "a: nodeAffinity needs gpu Exists, and it has none; metadata.name In [b], and it has a",
            "b: nodeAffinity needs gpu Exists, and it has none",
        ],
        [CHANGED_AFFINITY],
        ["pod/web spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"],
    ),
    "affinity to labels: a term without requirements selects nothing": (
        pending(affinity=required_labels({})),
        [NODE],
        ["a: nodeAffinity needs a term that selects it"],
        [CHANGED_AFFINITY],
        ["pod/web spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"],
    ),
    "port: the pod that has it is deleted": (
        pending(container=port(80)),
        [
            running("free", container=port(81)),
            running("udp", container=port(80, protocol="UDP")),
            running("local", container=port(80, hostIP="127.0.0.1")),
            NODE,
        ],
        ["a: the host port 80/TCP is that of the pod default/local"],
        ["kubectl -n default delete pod/local", OTHER_PORT],
        ["pod/local ", "pod/web spec.containers[c].ports"],
    ),
    "port: the controller of the pod that has it is deleted": (
        pending(container=port(80)),
        [running("db-0", metadata=OF_DB, container=port(80)), NODE],
        ["a: the host port 80/TCP is that of the pod default/db-0"],
        ["kubectl -n default delete statefulset/db", OTHER_PORT],
        ["statefulset/db ", "pod/web spec.containers[c].ports"],
    ),
    "port: a pod of the same controller has it": (
        pending(metadata=OF_DB, container=port(80)),
        [running("db-0", metadata=OF_DB, container=port(80)), NODE],
        ["a: the host port 80/TCP is that of the pod default/db-0"],
        [
            "Pods of the same template have the port, so that a node takes one of them. Add nodes: `mockube nodes --help`.",
            "Or change hostPort in the pod's template, or leave it out.",
        ],
        ["statefulset/db spec.template.spec.containers[c].ports"],
    ),
    "port: a container without one is no origin": (
        pending(
            containers=[
                {"name": "c", "image": "x", **port(80)},
                {"name": "d", "image": "x", "ports": [{"containerPort": 80}]},
                {"name": "e", "image": "x"},
            ]
        ),
        [running("other", container=port(80)), NODE],
        ["a: the host port 80/TCP is that of the pod default/other"],
        ["kubectl -n default delete pod/other", OTHER_PORT],
        ["pod/other ", "pod/web spec.containers[c].ports"],
    ),
    "spread: the zone with most pods, and that with fewest": (
        pending(topologySpreadConstraints=[spread()]),
        [
            running("p", labels=WEB),
            running("q", labels=WEB),
            running("r", "b", labels=WEB),
            running("s", "b", labels={"app": "db"}),
            IN_A,
            node_of("b", labels={"zone": "y"}, taints=[taint("team")]),
        ],
        [
            "a: zone=x has 2 of the pods, zone=y has 1, and maxSkew is 1",
            "b: team:NoSchedule",
        ],
        [
            PREFERRED,
            tolerated(key="team", effect="NoSchedule", operator="Exists"),
            "kubectl taint nodes b team:NoSchedule-",
        ],
        ["pod/web spec.topologySpreadConstraints", "node/b spec.taints[team]"],
    ),
    "spread: what only a pod prefers is not named": (
        pending(
            topologySpreadConstraints=[
                spread(),
                spread("kubernetes.io/hostname", "ScheduleAnyway"),
            ],
            metadata=OF_DB,
        ),
        [running("p", labels=WEB), IN_A, node_of("b", labels={"zone": "y"}, unschedulable=True)],
        ["a: zone=x has 1 of the pods, zone=y has 0, and maxSkew is 1", "b: cordoned"],
        [
            patch_of_db(
                {
                    "topologySpreadConstraints": [
                        {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
                    ]
                },
            ),
            "kubectl uncordon b",
        ],
        ["statefulset/db spec.template.spec.topologySpreadConstraints", "node/b spec.unschedulable"],
    ),
    "spread: a node that the pod does not select has no domain": (
        pending(topologySpreadConstraints=[spread("rack")], nodeSelector={"zone": "x"}),
        [
            running("p", labels=WEB),
            running("q", labels=WEB),
            running("r", "b", labels=WEB),
            node_of("a", labels={"zone": "x", "rack": "1"}),
            node_of("b", labels={"zone": "x", "rack": "2"}, unschedulable=True),
            node_of("c", labels={"zone": "y", "rack": "3"}, unschedulable=True),
        ],
        [
            "a: rack=1 has 2 of the pods, rack=2 has 1, and maxSkew is 1",
            "b: cordoned",
            "c: cordoned",
            "c: lacks zone=x",
        ],
        [PREFERRED, "kubectl uncordon b"],
        ["pod/web spec.topologySpreadConstraints", "node/b spec.unschedulable"],
    ),
    "spread: a node lacks the label, of which another one has a value": (
        pending(topologySpreadConstraints=[spread("rack"), spread()]),
        [
            node_of("a", labels={"rack": "r"}),
            node_of("b", labels={"rack": "r", "zone": "y"}, unschedulable=True),
        ],
        ["a: lacks the label zone", "b: cordoned"],
        ["kubectl label node a zone=y --overwrite", PREFERRED, "kubectl uncordon b"],
        [
            "pod/web spec.topologySpreadConstraints",
            "node/a metadata.labels.zone",
            "node/b spec.unschedulable",
        ],
    ),
    "spread: no node has a value": (
        pending(topologySpreadConstraints=[spread()]),
        [NODE],
        ["a: lacks the label zone"],
        ["kubectl label node a zone=VALUE --overwrite", PREFERRED],
        ["pod/web spec.topologySpreadConstraints", "node/a metadata.labels.zone"],
    ),
    "spread: the label of the host name is the name": (
        pending(topologySpreadConstraints=[spread("kubernetes.io/hostname")]),
        [
            thing("Node", "a", namespace="", spec={}, status=NODE["status"]),
            node_of("b", unschedulable=True),
        ],
        ["a: lacks the label kubernetes.io/hostname", "b: cordoned"],
        ["kubectl label node a kubernetes.io/hostname=a --overwrite", PREFERRED, "kubectl uncordon b"],
        [
            "pod/web spec.topologySpreadConstraints",
            'node/a metadata.labels["kubernetes.io/hostname"]',
            "node/b spec.unschedulable",
        ],
    ),
    "affinity: no pod that it selects is there": (
        pending(affinity=near("podAffinity", app="db")),
        [running("p", "b", labels={"app": "db"}), NODE, node_of("b", unschedulable=True)],
        ["a: podAffinity app=db in the same kubernetes.io/hostname matches no pod there", "b: cordoned"],
        [
            "Do not require the podAffinity of web, in a Pod that replaces web.",
            "Or run a pod there that the podAffinity selects.",
            "kubectl uncordon b",
        ],
        ["pod/web spec.affinity.podAffinity", "node/b spec.unschedulable"],
    ),
    "affinity: a node without the label": (
        pending(affinity=near("podAffinity", "zone", app="db"), metadata=OF_DB),
        [NODE],
        ["a: lacks the label zone of podAffinity"],
        [
            patch_of_db(
                {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}},
            ),
            "Or run a pod there that the podAffinity selects.",
        ],
        ["statefulset/db spec.template.spec.affinity.podAffinity"],
    ),
    "anti-affinity: a pod of the same zone": (
        pending(affinity=near("podAntiAffinity", "zone")),
        [
            running("p", "b", labels=WEB),
            running("q", "c", labels=WEB),
            IN_A,
            node_of("b", labels={"zone": "x"}),
            node_of("c", labels={"zone": "y"}),
        ],
        [
            "a: podAntiAffinity app=web in the same zone matches the pod default/p there",
            "b: podAntiAffinity app=web in the same zone matches the pod default/p there",
            "c: podAntiAffinity app=web in the same zone matches the pod default/q there",
        ],
        ["Do not require the podAntiAffinity of web, in a Pod that replaces web.", MORE_NODES],
        ["pod/web spec.affinity.podAntiAffinity"],
    ),
    "anti-affinity: that of another pod": (
        pending(),
        [running("p", affinity=near("podAntiAffinity"), metadata={**OF_DB, "labels": {}}), NODE],
        [
            "a: podAntiAffinity app=web in the same kubernetes.io/hostname of the pod default/p there matches it",
        ],
        [
            patch_of_db(
                {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}},
            ),
            MORE_NODES,
        ],
        ["statefulset/db spec.template.spec.affinity.podAntiAffinity"],
    ),
    "two plugins: what each of them needs": (
        pending(nodeSelector={"disk": "ssd"}),
        [CORDONED],
        ["a: cordoned", "a: lacks disk=ssd"],
        [
            NO_SINGLE,
            "kubectl uncordon a",
            "kubectl label node a disk=ssd --overwrite",
            "Or change spec.nodeSelector, in a Pod that replaces web.",
        ],
        ["node/a spec.unschedulable", "pod/web spec.nodeSelector.disk", "node/a metadata.labels.disk"],
    ),
}


@pytest.mark.parametrize(
    ("pod", "objects", "details", "remedies", "origins"), REJECTIONS.values(), ids=REJECTIONS
)
def test_rejected_node(pod, objects, details, remedies, origins):
    namespace = thing("Namespace", "default", namespace="")
    found = explain(PODS, pod, facts_of(pod, namespace, *objects))
    assert [f"{each.node}: {each.detail}" for each in found.nodes] == details
    assert [each.command or each.text for each in found.remedies] == remedies
    assert [f"{each.object} {field_text(each.path)}" for each in found.origins] == origins
