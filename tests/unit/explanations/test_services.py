"""What is said of Services and EndpointSlices in each state in which nobody reaches a pod by them."""

import orjson
import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import (
    condition,
    event,
    facts_of,
    node_of,
    pod_of,
    resource_of,
    thing,
    with_state,
)
from tests.support.told import told

WEB = {"app": "web"}
READY = {"phase": "Running", "conditions": [condition("Ready", "True")]}
BAD_IMAGE = with_state({"waiting": {"reason": "ErrImagePull", "message": "not found"}})
NO_IMAGE = "the image nginx of the container c does not exist in its registry"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "uid-x", "controller": True}
SHOW_LABELS = "- kubectl -n default get pods --show-labels"
NO_LABELS = "Explained: no pod in default has the labels of its selector"


def service(name="web", **spec):
    ports = [{"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 81}]
    return thing("Service", name, spec={"selector": WEB, "ports": ports, **spec})


def pod(name="p", *, labels=(), status=READY, **fields):
    return pod_of(
        name,
        metadata={"labels": {**WEB, **dict(labels)}, **fields.pop("metadata", {})},
        status=status,
        **fields,
    )


def ports(*numbers, **names):
    named = [{"name": name, "containerPort": number} for name, number in names.items()]
    return {"ports": [*({"containerPort": number} for number in numbers), *named]}


def endpoints(*endpoints, of="web"):
    labels = {"kubernetes.io/service-name": of} if of else {}
    head = {"metadata": {"labels": labels}, "api_version": "discovery.k8s.io/v1"}
    return thing("EndpointSlice", f"{of}-1", **head, endpoints=[*endpoints])


def address(*addresses, ready=None):
    conditions = {} if ready is None else {"conditions": {"ready": ready}}
    return {"addresses": [*addresses], **conditions}


def workload(kind, labels, name="shop", **metadata):
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 0, "template": template}
    return thing(kind, name, api_version="apps/v1", metadata=metadata, spec=spec, status={})


def lead_to(value):
    changed = [{"port": 80, "targetPort": value}, {"port": 81, "targetPort": 81}]
    body = orjson.dumps({"spec": {"ports": changed}}).decode()
    return f"- kubectl -n default patch service/web --type=merge -p '{body}'"


def select(text):
    return f"- kubectl -n default set selector service web {text}"


MISSING_PORT = "Explained: no container of its pods has a port named http, which is its targetPort"
UNDECLARED_PORT = (
    "Unknown: no container of its pods declares the port 81, which is its targetPort: if no program listens there, connections are "
    "refused"
)
NAME_PORT = "- Or name a port of a container http."
PORT_ORIGINS = ["@ service/web spec.ports", "@ pod/p spec.containers"]
BALANCED = service(type="LoadBalancer", selector=None)
UNWRITTEN = (
    "Unknown: 1 ready pods have the labels of its selector, and it has no addresses: the controller of EndpointSlices does not "
    "run, or has not finished"
)
SERVICES = {
    "alias": (
        service(type="ExternalName", externalName="x.y"),
        [],
        ["NoProblem: it is an alias of x.y, and has no addresses of its own"],
    ),
    "addresses of ready endpoints, and of those without a condition": (
        service(),
        [
            pod(container=ports(http=80)),
            endpoints(address("10.0.0.1", ready=True), address("10.0.0.2"), address("10.0.0.3", ready=False)),
            endpoints(address("10.0.0.4"), of="other"),
        ],
        ["NoProblem: it has 2 ready addresses"],
    ),
    "no container declares its port": (
        thing("Service", "web", spec={"selector": WEB, "ports": [{"port": 80, "targetPort": 81}]}),
        [
            pod(container=ports(80, 8080), initContainers=[{"name": "i"}]),
            endpoints(address("10.0.0.1")),
        ],
        [
            UNDECLARED_PORT,
            """- kubectl -n default patch service/web --type=merge -p '{"spec":{"ports":[{"port":80,"targetPort":80}]}}'""",
            *PORT_ORIGINS,
        ],
    ),
    "a container that declares no port may have any": (
        thing("Service", "web", spec={"selector": WEB, "ports": [{"port": 80, "targetPort": 81}]}),
        [
            pod(container=ports(80), initContainers=[{"name": "s", "restartPolicy": "Always"}]),
            endpoints(address("10.0.0.1")),
        ],
        ["NoProblem: it has 1 ready address"],
    ),
    "the port is declared": (
        thing("Service", "web", spec={"selector": WEB, "ports": [{"port": 80, "targetPort": 81}]}),
        [pod(container=ports(81)), endpoints(address("10.0.0.1"))],
        ["NoProblem: it has 1 ready address"],
    ),
    "one address": (
        service(selector=None),
        [endpoints(address("10.0.0.1"))],
        ["NoProblem: it has 1 ready address"],
    ),
    "load balancer": (
        BALANCED,
        [endpoints(address("10.0.0.1"))],
        [
            "Unknown: it has addresses, but no load balancer: a cloud's controller sets status.loadBalancer, and has not"
        ],
    ),
    "load balancer that fails": (
        BALANCED,
        [endpoints(address("10.0.0.1")), event(BALANCED, "SyncLoadBalancerFailed", "no address")],
        ["Explained: it has addresses, but no load balancer: no address"],
    ),
    "load balancer that has an address": (
        {**BALANCED, "status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}}},
        [endpoints(address("10.0.0.1"))],
        ["NoProblem: it has 1 ready address"],
    ),
    "no selector": (
        service(selector=None),
        [],
        [
            "Explained: it has no selector, so nobody writes addresses for it but its owner, who has not",
            "- Set spec.selector, or create an EndpointSlice for it.",
            "@ service/web spec.selector",
        ],
    ),
    "its pod is not ready": (
        service(),
        [pod(status=BAD_IMAGE, container=ports(http=80))],
        [
            f"Explained: its pod is not ready; p: {NO_IMAGE}",
            "- kubectl -n default set image pod/p c=IMAGE",
            "- mockube images resolve nginx",
            "@ pod/p spec.containers[c].image",
        ],
    ),
    "its pod is not ready, and has no such port either": (
        service(),
        [pod(status=BAD_IMAGE, container=ports(web=80))],
        [
            f"Explained: its pod is not ready; p: {NO_IMAGE}; also, no container of its pods has a port named http, which is its targetPort",
            "- kubectl -n default set image pod/p c=IMAGE",
            "- mockube images resolve nginx",
            lead_to("web"),
            NAME_PORT,
            "@ pod/p spec.containers[c].image",
            *PORT_ORIGINS,
        ],
    ),
    "none of its pods is ready, and one of them says why": (
        service(),
        [pod("a", status={"phase": "Pending"}), pod(status=BAD_IMAGE, container=ports(http=80))],
        [
            f"Explained: none of its 2 pods is ready; p: {NO_IMAGE}",
            "- kubectl -n default set image pod/p c=IMAGE",
            "- mockube images resolve nginx",
            "@ pod/p spec.containers[c].image",
        ],
    ),
    "pods that have ended are not its pods": (
        service(),
        [pod(status={"phase": "Succeeded"}), pod("q", status={"phase": "Failed"})],
        [NO_LABELS, SHOW_LABELS, "@ service/web spec.selector"],
    ),
    "addresses are not written yet": (service(), [pod(container=ports(http=80))], [UNWRITTEN]),
    "the port of a sidecar": (
        service(),
        [pod(initContainers=[{"name": "i", "image": "x", "restartPolicy": "Always", **ports(http=80)}])],
        [UNWRITTEN],
    ),
    "no port of that name, but another one": (
        service(),
        [pod(container=ports(web=80))],
        [MISSING_PORT, lead_to("web"), NAME_PORT, *PORT_ORIGINS],
    ),
    "no port of that name, but one without a name": (
        service(),
        [pod(container=ports(8080)), endpoints(address("10.0.0.1"))],
        [MISSING_PORT, lead_to(8080), NAME_PORT, *PORT_ORIGINS],
    ),
    "no port at all": (
        service(),
        [pod()],
        [MISSING_PORT, "- Name a port of a container http.", *PORT_ORIGINS],
    ),
    **{
        f"a {kind} has the pods, and none is there": (
            service(),
            [workload(kind, WEB)],
            [f"Explained: {kind.lower()}/shop, whose pods it selects, has none: {cause}", *remedies],
        )
        for kind, cause, remedies in (
            ("ReplicaSet", "it is scaled to 0", []),
            *(
                (
                    kind,
                    "it is scaled to 0: it has no pods because spec.replicas is 0",
                    [
                        f"- kubectl -n default scale {kind.lower()}/shop --replicas=1",
                        f"@ {kind.lower()}/shop spec.replicas",
                    ],
                )
                for kind in ("Deployment", "StatefulSet")
            ),
        )
    },
    "nearest is the pod that has the key of the selector": (
        service(),
        [pod(labels={"app": "shop"}), pod_of("q", metadata={"labels": {"x": "y"}})],
        [
            f"{NO_LABELS}; nearest is pod/p: it has app=shop, not app=web",
            select("app=shop"),
            "@ service/web spec.selector.app",
            "@ pod/p metadata.labels.app",
        ],
    ),
    "nearest is the workload with most of the labels": (
        service(selector={**WEB, "tier": "front", "team": "a"}),
        [pod(labels={"app": "x"}), workload("DaemonSet", {**WEB, "tier": "back"})],
        [
            f"{NO_LABELS}; nearest is daemonset/shop: it has tier=back, not tier=front; it has no label team",
            select("app=web,tier=back"),
            "@ service/web spec.selector.tier",
            "@ service/web spec.selector.team",
            "@ daemonset/shop spec.template.metadata.labels.tier",
            "@ daemonset/shop spec.template.metadata.labels.team",
        ],
    ),
    "nearest is what has its name": (
        service(),
        [pod_of("p", metadata={"labels": {"x": "y"}}), pod_of("web", metadata={"labels": {"x": "y"}})],
        [
            f"{NO_LABELS}; nearest is pod/web: it has no label app",
            "@ service/web spec.selector.app",
            "@ pod/web metadata.labels.app",
        ],
    ),
    "nearest is the workload whose label is like the one that is selected, and not another program": (
        service("okk", selector={"app": "okk"}),
        [workload("Deployment", {"app": "anti"}, "anti"), workload("Deployment", {"app": "ok"}, "ok")],
        [
            f"{NO_LABELS}; nearest is deployment/ok: it has app=ok, not app=okk",
            "- kubectl -n default set selector service okk app=ok",
            "@ service/okk spec.selector.app",
            "@ deployment/ok spec.template.metadata.labels.app",
        ],
    ),
    "no label of other programs is like the one that is selected": (
        service("front", selector={"app": "front"}),
        [workload("Deployment", {"app": "anti"}, "anti"), workload("Deployment", {"app": "db"}, "db")],
        [NO_LABELS, SHOW_LABELS, "@ service/front spec.selector"],
    ),
    "nearest of two is the one with the port": (
        service("x", selector={"app": "web-c"}),
        [
            pod("a", labels={"app": "web-a"}, container=ports(82)),
            pod("b", labels={"app": "web-b"}, container=ports(81)),
        ],
        [
            f"{NO_LABELS}; nearest is pod/b: it has app=web-b, not app=web-c",
            "- kubectl -n default set selector service x app=web-b",
            "@ service/x spec.selector.app",
            "@ pod/b metadata.labels.app",
        ],
    ),
    "a pod of a controller is not what to select": (
        service(),
        [
            pod(labels={"app": "shop"}, metadata={"ownerReferences": [OWNER]}),
            workload("ReplicaSet", {"app": "shop"}, ownerReferences=[OWNER]),
        ],
        [NO_LABELS, SHOW_LABELS, "@ service/web spec.selector"],
    ),
    "a pod that has ended is not what to select": (
        service(),
        [pod(labels={"app": "shop"}, status={"phase": "Failed"})],
        [NO_LABELS, SHOW_LABELS, "@ service/web spec.selector"],
    ),
    "a pod without any of its labels is not near": (
        service(),
        [pod_of("p", metadata={"labels": {"x": "y"}})],
        [NO_LABELS, SHOW_LABELS, "@ service/web spec.selector"],
    ),
    "slice of no Service": (
        endpoints(of=""),
        [],
        ["Unknown: it belongs to no Service: it has no label kubernetes.io/service-name"],
    ),
    "slice of a Service that does not exist": (
        endpoints(),
        [],
        ["Explained: the Service web does not exist", "@ service/web"],
    ),
    "slice of a Service": (
        endpoints(address("10.0.0.1")),
        [service(selector=None)],
        ["NoProblem: it has 1 ready address"],
    ),
}


@pytest.mark.parametrize(("obj", "objects", "lines"), SERVICES.values(), ids=SERVICES)
def test_service(obj, objects, lines):
    assert told(explain(resource_of(obj), obj, facts_of(obj, node_of(), *objects))) == lines


@pytest.mark.parametrize(
    ("obj", "objects", "refused", "line"),
    [
        (
            service(selector=None),
            [],
            "endpointslices.discovery.k8s.io",
            "Unknown: it has no selector, and its EndpointSlices you may not list",
        ),
        (service(), [], "pods", "Unknown: its pods cannot be looked at without the right to list pods"),
        (
            service(),
            [pod(container=ports(http=80)), pod("q", status=BAD_IMAGE)],
            "endpointslices.discovery.k8s.io",
            "Unknown: 1 of its 2 pods are ready; its addresses are in EndpointSlices, which you may not list",
        ),
        (
            service(),
            [],
            "endpointslices.discovery.k8s.io",
            NO_LABELS,
        ),
        (
            endpoints(),
            [],
            "services",
            "Unknown: it belongs to the Service web, which you may not read",
        ),
    ],
    ids=["slices", "pods", "slices of ready pods", "slices without pods", "Service of a slice"],
)
def test_service_of_which_not_all_may_be_read(obj, objects, refused, line):
    assert told(explain(resource_of(obj), obj, facts_of(obj, *objects, refused=(refused,))))[0] == line
