"""What is said of Ingresses, Gateways, their classes and routes, of budgets, and of nodes that keep pods off."""

import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import condition, event, facts_of, node_of, pod_of, resource_of, thing
from tests.support.told import told

WEB = {"app": "web"}
SERVICE = thing("Service", spec={"selector": None, "ports": [{"port": 80, "name": "http"}, {"port": 81}]})
SLICE = thing(
    "EndpointSlice",
    api_version="discovery.k8s.io/v1",
    metadata={"labels": {"kubernetes.io/service-name": "web"}},
    endpoints=[{"addresses": ["10.0.0.1"]}],
)
ADDRESSED = {"loadBalancer": {"ingress": [{"hostname": "x.y"}, {}, {"ip": "127.0.0.1"}]}}


def ingress(*backends, status=ADDRESSED, annotations=(), **spec):
    paths = [{"path": "/a", "backend": {"service": each}} for each in backends]
    rules = [{"host": "h", "http": {"paths": paths}}] if backends else []
    fields = {"metadata": {"annotations": dict(annotations)}, "api_version": "networking.k8s.io/v1"}
    return thing("Ingress", spec={"rules": rules, **spec}, status=status, **fields)


def backend(service="web", /, **port):
    return {"name": service, "port": port or {"number": 80}}


def ingress_class(name="nginx", default="false"):
    annotations = {"ingressclass.kubernetes.io/is-default-class": default}
    return thing(
        "IngressClass",
        name,
        api_version="networking.k8s.io/v1",
        namespace="",
        metadata={"annotations": annotations},
    )


NEW = {"status": {}}
GOOD = "NoProblem: its Services have ready addresses"
SET_CLASS = """- kubectl -n default patch ingress/web -p '{"spec":{"ingressClassName":"nginx"}}'"""
NO_CLASS = "Explained: there is no IngressClass x, so that no controller serves it"
OF_CLASS = ["@ ingress/web spec.ingressClassName", "@ ingressclass/x"]
NO_SERVICE = [
    "- kubectl -n default get services",
    "- Change the backend to one of them, or create the Service.",
    "@ service/web",
    "@ ingress/web spec",
]
NO_ADDRESS = "no controller of {} has given it an address, and who that is is not known"

INGRESSES = {
    "served": (ingress(backend()), [SERVICE, SLICE], [GOOD]),
    "served, with another class": (ingress(ingressClassName="x"), [], [GOOD]),
    "a port by its name": (ingress(backend(name="http")), [SERVICE, SLICE], [GOOD]),
    "no Service": (
        ingress(backend()),
        [],
        ["Explained: the Service web, to which h/a leads, does not exist", *NO_SERVICE],
    ),
    "no Service of the default backend": (
        ingress(defaultBackend={"service": backend()}),
        [],
        ["Explained: the Service web, to which the default backend leads, does not exist", *NO_SERVICE],
    ),
    "no host and no path": (
        ingress(rules=[{}, {"http": {"paths": [{"backend": {}}, {"backend": {"service": backend()}}]}}]),
        [],
        ["Explained: the Service web, to which */ leads, does not exist", *NO_SERVICE],
    ),
    **{
        f"no port {port}": (
            ingress(backend(**{field: port})),
            [SERVICE, SLICE],
            [
                f"Explained: the Service web, to which h/a leads, has no port {port}",
                "- Change the port of the backend to one of 80, 81.",
                "@ service/web spec.ports",
                "@ ingress/web spec",
            ],
        )
        for field, port in (("number", 8080), ("name", "web"))
    },
    "its Service does not answer": (
        ingress(backend()),
        [SERVICE],
        [
            "Explained: the Service web, to which h/a leads, does not answer: it has no selector, so nobody writes addresses for it but its owner, who has not",
            "- Set spec.selector, or create an EndpointSlice for it.",
            "@ service/web spec.selector",
        ],
    ),
    "no certificate": (
        ingress(tls=[{}, {"secretName": "s", "hosts": ["a", "b"]}]),
        [],
        [
            "Explained: the Secret s, which has the certificate of a, b, does not exist: controllers use one of their own",
            "- kubectl -n default create secret tls s --cert=FILE --key=FILE",
            "@ secret/s",
        ],
    ),
    "a certificate": (ingress(tls=[{"secretName": "s"}]), [thing("Secret", "s")], [GOOD]),
    **{
        f"a part is left out, {reason}": (ingress(), [event(ingress(), reason, "m")], ["Explained: m"])
        for reason in ("DuplicatePath", "BadCertificate")
    },
    "another Event": (ingress(), [event(ingress(), "Sync", "m")], [GOOD]),
    "a class that does not exist": (
        ingress(ingressClassName="x", **NEW),
        [ingress_class()],
        [NO_CLASS, SET_CLASS, *OF_CLASS],
    ),
    "a class of an annotation that does not exist": (
        ingress(annotations={"kubernetes.io/ingress.class": "x"}, **NEW),
        [],
        [NO_CLASS, "- Install a controller of Ingresses with an IngressClass.", *OF_CLASS],
    ),
    "a class without a controller": (
        ingress(ingressClassName="nginx", **NEW),
        [ingress_class()],
        [f"Unknown: {NO_ADDRESS.format('the class nginx')}"],
    ),
    "no class, and no default one": (
        ingress(**NEW),
        [ingress_class()],
        [
            "Explained: it names no class, and no IngressClass is the default one, so that no controller serves it",
            SET_CLASS,
            OF_CLASS[0],
        ],
    ),
    "no class, and a default one": (
        ingress(**NEW),
        [ingress_class(default="true")],
        [f"Unknown: {NO_ADDRESS.format('the default class')}"],
    ),
}

# --- Gateways

GROUP = "gateway.networking.k8s.io/v1"
ACCEPTED, PROGRAMMED = condition("Accepted", "True"), condition("Programmed", "True")


def bad(name, status="False"):
    return condition(name, status, "R", "m")


def gateway(*conditions, listeners=(), name="gate", namespace="default", **spec):
    status = {"conditions": [*conditions], "listeners": [*listeners]}
    spec = {"gatewayClassName": "x", **spec}
    return thing("Gateway", name, api_version=GROUP, namespace=namespace, spec=spec, status=status)


def listener(*conditions, routes=1):
    return {"name": "l", "conditions": [*conditions], "attachedRoutes": routes}


def gateway_class(*conditions, name="x"):
    fields = {"spec": {"controllerName": "c/d"}, "status": {"conditions": [*conditions]}}
    return thing("GatewayClass", name, api_version=GROUP, namespace="", **fields)


def parent(name="gate", **fields):
    return {"name": name, **fields}


def route(*parents, statuses=(), backends=()):
    spec = {"parentRefs": [*parents], "rules": [{"backendRefs": [*backends]}, {}]}
    return thing("HTTPRoute", api_version=GROUP, spec=spec, status={"parents": [*statuses]})


def status_of(reference, *conditions):
    return {"parentRef": reference, "conditions": [*conditions]}


SERVED = gateway(ACCEPTED, PROGRAMMED, listeners=[listener(routes=0), listener(routes=2)])
PENDING = gateway(condition("Accepted", "Unknown"))
NAME_CLASS = """- kubectl -n default patch gateway/gate --type=merge -p '{"spec":{"gatewayClassName":"y"}}'"""
ATTACH = (
    """- kubectl -n default patch httproute/web --type=merge -p '{"spec":{"parentRefs":[{"name":"gate"}]}}'"""
)
ON_GATE = status_of(parent(), ACCEPTED)
ALL = "- kubectl get gateways -A"
NO_GATE = "Explained: there is no Gateway no in default, to which it would be attached"
OF_GATE = ["@ httproute/web spec.parentRefs", "@ gateway/no"]
ROUTED = "NoProblem: its Gateways accept it, and its Services have ready addresses"
UNSEEN = "Unknown: the controller of the Gateway gate has not looked at it yet, or ignores its kind"

GATEWAYS = {
    "gateway: served": (SERVED, [], ["NoProblem: its listeners are programmed, and have routes"]),
    "gateway: no route": (
        gateway(ACCEPTED, listeners=[listener(routes=0)]),
        [],
        [
            "Explained: no route is attached to it, so that each request gets 404",
            "- kubectl get httproutes -A",
        ],
    ),
    "gateway: no class of its name": (
        PENDING,
        [gateway_class(name="y")],
        [
            "Explained: there is no GatewayClass x, so that no controller serves it",
            NAME_CLASS,
            "- kubectl get gatewayclasses",
            "@ gateway/gate spec.gatewayClassName",
            "@ gatewayclass/x",
        ],
    ),
    "gateway: no program of its class": (
        PENDING,
        [gateway_class()],
        ["Unknown: no program has accepted it: none of the controller c/d runs, or it is busy"],
    ),
    **{
        f"gateway: {name}={status}": (
            gateway(*([] if name == "Accepted" else [ACCEPTED]), bad(name, status), listeners=[listener()]),
            [],
            [f"Explained: it has the condition {name}={status}, R: m"],
        )
        for name, status in (
            ("Accepted", "False"),
            ("Conflicted", "True"),
            ("ResolvedRefs", "False"),
            ("Programmed", "False"),
        )
    },
    "gateway: the first cause is its acceptance": (
        gateway(bad("Programmed"), bad("Accepted")),
        [],
        ["Explained: it has the condition Accepted=False, R: m"],
    ),
    "gateway: a listener": (
        gateway(ACCEPTED, listeners=[listener(ACCEPTED), listener(bad("ResolvedRefs"))]),
        [],
        ["Explained: its listener l has the condition ResolvedRefs=False, R: m"],
    ),
    "class: accepted": (gateway_class(ACCEPTED), [], ["NoProblem: the controller c/d has accepted it"]),
    "class: refused": (
        gateway_class(bad("Accepted")),
        [],
        ["Explained: it has the condition Accepted=False, R: m"],
    ),
    "class: new": (
        gateway_class(condition("Accepted", "Unknown")),
        [],
        ["Unknown: no program has accepted it: none of the controller c/d runs, or it is busy"],
    ),
    "route: served": (
        route(parent(), statuses=[ON_GATE], backends=[{"name": "web", "port": 80}]),
        [SERVED, SERVICE, SLICE],
        [ROUTED],
    ),
    "route: a backend that is no Service": (
        route(
            parent(),
            statuses=[ON_GATE],
            backends=[{"name": "a", "kind": "Other"}, {"name": "b", "kind": "Service", "group": "x.y"}],
        ),
        [SERVED],
        [ROUTED],
    ),
    "route: a Service of another namespace": (
        route(parent(), statuses=[ON_GATE], backends=[{"name": "web", "port": 80, "namespace": "b"}]),
        [SERVED, SERVICE, SLICE],
        [
            "Explained: the Service web, to which the route leads, does not exist",
            "- kubectl -n b get services",
            "- Change the backend to one of them, or create the Service.",
            "@ service/web",
            "@ httproute/web spec",
        ],
    ),
    "route: no parent": (
        route(parent(kind="Service")),
        [SERVED],
        [
            "Explained: it names no Gateway as its parent, so that nothing uses it",
            ATTACH,
            "- Set spec.parentRefs to a Gateway.",
            "@ httproute/web spec.parentRefs",
        ],
    ),
    "route: its Gateway does not exist": (route(parent("no")), [SERVED], [NO_GATE, ATTACH, ALL, *OF_GATE]),
    "route: one of two Gateways does not exist": (
        route(parent("no"), parent("x")),
        [SERVED],
        [NO_GATE, ALL, *OF_GATE],
    ),
    "route: its Gateway refuses it": (
        route(parent(), statuses=[status_of(parent(), bad("ResolvedRefs"))]),
        [SERVED],
        ["Explained: on the Gateway gate, it has the condition ResolvedRefs=False, R: m"],
    ),
    **{
        f"route: another {field} of its Gateway refuses it": (
            route(parent(), statuses=[status_of(parent(**{field: value}), bad("Accepted"))]),
            [SERVED],
            [UNSEEN],
        )
        for field, value in (("name", "x"), ("sectionName", "s"), ("port", 80), ("namespace", "b"))
    },
    "route: its Gateway does not serve": (
        route(parent()),
        [gateway(ACCEPTED, bad("Programmed"))],
        [
            "Explained: the Gateway gate, to which it is attached, does not serve: it has the condition Programmed=False, R: m"
        ],
    ),
    "route: a Gateway of another namespace": (
        route(parent(namespace="b"), statuses=[status_of(parent(namespace="b"), ACCEPTED)]),
        [gateway(ACCEPTED, namespace="b")],
        [ROUTED],
    ),
}

# --- budgets and nodes

READY = {"phase": "Running", "conditions": [condition("Ready", "True")]}


def budget(status=None, *, metadata=(), **spec):
    spec = {"selector": {"matchLabels": WEB}, "minAvailable": 1, **spec}
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0}
    status = counts if status is None else status
    return thing("PodDisruptionBudget", api_version="policy/v1", spec=spec, status=status, metadata=metadata)


def counts(healthy, desired, expected=3, **fields):
    return {"currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected, **fields}


def pod(name="p", *, status=READY, labels=WEB, **fields):
    return pod_of(name, status=status, metadata={"labels": labels, **fields.pop("metadata", {})}, **fields)


def loosen(field, value):
    return f"""- kubectl -n default patch poddisruptionbudget/web --type=merge -p '{{"spec":{{"{field}":{value}}}}}'"""


OF_MINIMUM, OF_MAXIMUM = (
    f"@ poddisruptionbudget/web spec.{name}" for name in ("minAvailable", "maxUnavailable")
)
FAILED = {**condition("DisruptionAllowed", "False", "SyncFailed", "m")}
NO_PODS = "NoProblem: it selects no pods, so that it forbids nothing"
BY_MAXIMUM = {"selector": {"matchLabels": WEB}, "maxUnavailable": 1}


def by_maximum(status):
    return {**budget(status), "spec": BY_MAXIMUM}


BUDGETS = {
    "computed": (budget(counts(2, 1, disruptionsAllowed=1)), [], ["NoProblem: 1 pods may be evicted now"]),
    "new": (
        budget({}),
        [],
        ["Unknown: it has no status: its controller has not looked at it yet, or does not run"],
    ),
    "changed": (
        budget({"observedGeneration": 1}, metadata={"generation": 2}),
        [],
        ["Unknown: its controller has not observed generation 2 yet: it does not run, or it is busy"],
    ),
    "not computed": (
        budget({"conditions": [FAILED]}),
        [],
        ["Explained: no pod may be evicted, because the budget cannot be computed: m"],
    ),
    "without pods": (budget(counts(0, 0, 0)), [pod(labels={"app": "db"})], [NO_PODS]),
    "with a pod of another namespace": (
        budget(counts(0, 0, 0)),
        [{**pod(), "metadata": {**pod()["metadata"], "namespace": "b"}}],
        [NO_PODS],
    ),
    "with a pod that has ended": (budget(counts(0, 0, 0)), [pod(status={"phase": "Failed"})], [NO_PODS]),
    "pods are not counted yet": (
        budget(counts(0, 0, 0)),
        [pod()],
        ["Explained: no pod may be evicted: its controller expects no pods yet", OF_MINIMUM],
    ),
    "as many as must be": (
        budget(counts(2, 2)),
        [pod()],
        [
            "Explained: no ready pod may be evicted: 2 pods are healthy, and 2 must be",
            loosen("minAvailable", 1),
            OF_MINIMUM,
        ],
    ),
    "fewer than must be": (
        budget(counts(1, 2)),
        [pod()],
        [
            "Explained: no pod may be evicted: 1 pods are healthy, and 2 must be",
            loosen("minAvailable", 0),
            OF_MINIMUM,
        ],
    ),
    "fewer than must be, and unready ones may go": (
        budget(counts(1, 2), unhealthyPodEvictionPolicy="AlwaysAllow"),
        [pod()],
        [
            "Explained: no ready pod may be evicted: 1 pods are healthy, and 2 must be",
            loosen("minAvailable", 0),
            OF_MINIMUM,
        ],
    ),
    "none is healthy": (
        budget(counts(0, 1)),
        [pod()],
        ["Explained: no pod may be evicted: 0 pods are healthy, and 1 must be", OF_MINIMUM],
    ),
    "by a maximum": (
        by_maximum(counts(1, 2)),
        [pod()],
        [
            "Explained: no pod may be evicted: 1 pods are healthy, and 2 must be",
            loosen("maxUnavailable", 3),
            OF_MAXIMUM,
        ],
    ),
    "an unready pod": (
        budget(counts(1, 1)),
        [pod(status={"phase": "Failed"}), pod("q", nodeName="gone", status={"phase": "Running"})],
        [
            "Explained: no ready pod may be evicted: 1 pods are healthy, and 1 must be",
            loosen("minAvailable", 0),
            "- kubectl -n default delete pod/q --force",
            "@ node/gone",
            OF_MINIMUM,
        ],
    ),
}

TEAM, PREFERRED = {"key": "team", "effect": "NoSchedule"}, {"key": "x", "effect": "PreferNoSchedule"}
CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
TAKES = "Explained: the node is ready, and takes only pods that tolerate team:NoSchedule"
UNTAINT = ["- kubectl taint nodes a team:NoSchedule-", "@ node/a spec.taints[team]"]
CORDON = ["- kubectl uncordon a", "@ node/a spec.unschedulable"]
CORDONED = node_of(unschedulable=True)
DRAINED = [
    "Explained: the node is cordoned: it takes no new pods; no PodDisruptionBudget keeps a drain from its end",
    *CORDON,
]
BLOCKED = [
    "Explained: the node is cordoned, and a drain cannot evict 1 of its pods, such as p: the PodDisruptionBudget web allows no disruption",
    "- mockube why poddisruptionbudget/web -n default",
    *CORDON,
    "@ poddisruptionbudget/web spec",
]
SET = {"kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}


def node_with(*conditions, **fields):
    found = node_of(**fields)
    found["status"]["conditions"] += conditions
    return found


NODES = {
    "ready": (node_of(taints=[PREFERRED]), [], ["NoProblem: the node is ready"]),
    "never reported": (
        thing("Node", "a", namespace="", spec={}, status={}),
        [],
        ["Unknown: no kubelet has reported the state of the node"],
    ),
    "not ready": (
        node_of(ready="False"),
        [],
        ["Explained: its kubelet reports that it is not ready: KubeletNotReady"],
    ),
    "silent": (
        node_of(ready="Unknown"),
        [],
        [
            "Explained: its kubelet has stopped reporting: the node controller set Ready to Unknown",
            "- kubectl -n kube-node-lease get lease a -o yaml",
        ],
    ),
    **{
        name: (node_with(bad(name, "True")), [], [f"Explained: the node has {name}: m"])
        for name in ("MemoryPressure", "DiskPressure", "PIDPressure")
    },
    "no pressure": (
        node_with(bad("DiskPressure"), bad("Other", "True")),
        [],
        ["NoProblem: the node is ready"],
    ),
    "tainted": (
        node_of(taints=[TEAM, PREFERRED, CONTROL_PLANE]),
        [],
        [TAKES, *UNTAINT, '@ node/a spec.taints["node-role.kubernetes.io/control-plane"]'],
    ),
    "tainted, and pods wait": (
        node_of(taints=[TEAM]),
        [
            pod("a", nodeName=None),
            pod("b", nodeName=None),
            pod("c"),
            pod("d", nodeName=None, status={"phase": "Failed"}),
            pod("e", nodeName=None, tolerations=[{"operator": "Exists"}]),
        ],
        [f"{TAKES}; 2 pods that wait for a node do not tolerate it", *UNTAINT],
    ),
    "tainted by a controller": (
        node_of(taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]),
        [],
        ["NoProblem: the node is ready"],
    ),
    "cordoned": (CORDONED, [pod()], DRAINED),
    "cordoned, and a budget forbids an eviction": (CORDONED, [pod(), budget()], BLOCKED),
    "cordoned, and an unready pod may go": (
        CORDONED,
        [pod(status={"phase": "Running"}), budget(counts(2, 2))],
        DRAINED,
    ),
    "cordoned, and an unready pod may not go": (
        CORDONED,
        [pod(status={"phase": "Running"}), budget(counts(1, 2))],
        BLOCKED,
    ),
    "cordoned, and a budget allows an eviction": (
        CORDONED,
        [pod(), budget(counts(2, 1, disruptionsAllowed=1))],
        DRAINED,
    ),
    "cordoned, and a budget is of other pods": (CORDONED, [pod(labels={}), budget()], DRAINED),
    "cordoned, and the pods of a budget are on other nodes": (
        CORDONED,
        [pod(nodeName="b"), budget()],
        DRAINED,
    ),
    **{
        f"cordoned, and a drain leaves {name}": (CORDONED, [pod(metadata=metadata), budget()], DRAINED)
        for name, metadata in (
            ("pods of DaemonSets", {"ownerReferences": [SET]}),
            ("mirror pods", {"annotations": {"kubernetes.io/config.mirror": "x"}}),
            ("pods that end", {"deletionTimestamp": "2026-01-31T11:59:50Z"}),
        )
    },
}

ROWS = {
    f"{topic}: {name}": row
    for topic, table in (("ingress", INGRESSES), ("api", GATEWAYS), ("budget", BUDGETS), ("node", NODES))
    for name, row in table.items()
}


@pytest.mark.parametrize(("obj", "objects", "lines"), ROWS.values(), ids=ROWS)
def test_object(obj, objects, lines):
    assert told(explain(resource_of(obj), obj, facts_of(obj, *objects))) == lines


BUDGET_RESOURCE = "poddisruptionbudgets.policy"
WITHOUT_RIGHT = ["Explained: the node is cordoned: it takes no new pods", *CORDON]


@pytest.mark.parametrize(
    ("obj", "objects", "refused", "lines"),
    [
        (
            ingress(backend(), **NEW),
            [SERVICE, SLICE],
            "ingressclasses.networking.k8s.io",
            [f"Unknown: {NO_ADDRESS.format('the default class')}"],
        ),
        (
            ingress(backend()),
            [],
            "services",
            ["Unknown: it leads to the Service web, which you may not read"],
        ),
        (
            route(parent()),
            [],
            "gateways.gateway.networking.k8s.io",
            ["Unknown: its parent is the Gateway gate, which you may not read"],
        ),
        (
            PENDING,
            [],
            "gatewayclasses.gateway.networking.k8s.io",
            ["Unknown: no program has accepted it: none of the class x runs, or it is busy"],
        ),
        (budget(counts(0, 1)), [], "pods", ["Unknown: it allows no disruption; its pods you may not list"]),
        (CORDONED, [pod()], "pods", WITHOUT_RIGHT),
        (CORDONED, [pod()], BUDGET_RESOURCE, WITHOUT_RIGHT),
    ],
    ids=["classes", "Service", "Gateway", "GatewayClass", "pods of a budget", "pods of a node", "budgets"],
)
def test_object_of_which_not_all_may_be_read(obj, objects, refused, lines):
    assert told(explain(resource_of(obj), obj, facts_of(obj, *objects, refused=(refused,)))) == lines
