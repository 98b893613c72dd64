"""What the network reads from the objects: which pods, nodes and Services have an address or a port, and the rules of a node without kube-proxy."""

import pytest

from mockube.apimachinery import meta
from mockube.client import kinds
from tests.support.publishing import VIEWED, PublisherParts

ENDED = {"phase": "Succeeded"}
ON_HOST = {"hostNetwork": True}
V6, V6_LONG = "fd00::1", "fd00:0:0:0:0:0:0:1"


def pod(name="web", *, status=(), labels=(), image="nginx", ports=(), uid="", **spec):
    containers = [{"name": "c", "image": image, "ports": [*ports]}]
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            "labels": dict(labels),
        },
        "spec": {"nodeName": "a", "containers": containers, **spec},
        "status": {"phase": "Running", **dict(status)},
    }


def at(*addresses):
    return {"podIP": addresses[0], "podIPs": [{"ip": each} for each in addresses]}


def service(name="web", *, balanced=(), **spec):
    ingress = {"loadBalancer": {"ingress": [*balanced]}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": ingress}


def slice_of(name, *addresses, of="web"):
    labels = {"kubernetes.io/service-name": of} if of else {}
    endpoints = [{"addresses": [*addresses]}]
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}, "endpoints": endpoints}


def node(name="a", *addresses, **labels):
    listed = [{"type": kind, "address": address} for kind, address in addresses]
    return {"metadata": {"name": name, "labels": labels}, "status": {"addresses": listed}}


def host_port(number):
    return {"containerPort": 80, "hostPort": number}


def ingress_class(name, controller, *, default="false"):
    annotations = {"ingressclass.kubernetes.io/is-default-class": default}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"controller": controller}}


@pytest.fixture
async def parts():
    made = PublisherParts()
    await made.sync(*VIEWED)
    await made.view.wait_synced()
    return made


def names(found):
    if isinstance(found, dict):
        return meta.name(found)
    return sorted(map(meta.name, found)) if isinstance(found, list | tuple) else found


CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}
ANSWERS = {
    "pod: its address": (kinds.PODS, [pod(status=at("10.0.0.1"))], ("pod_at", "10.0.0.1"), "web"),
    "pod: its only address": (kinds.PODS, [pod(status={"podIP": "10.0.0.1"})], ("pod_at", "10.0.0.1"), "web"),
    "pod: its second address, written otherwise": (
        kinds.PODS,
        [pod(status=at("10.0.0.1", V6))],
        ("pod_at", V6_LONG),
        "web",
    ),
    "pod: another address": (kinds.PODS, [pod(status=at("10.0.0.1"))], ("pod_at", "10.0.0.2"), None),
    "pod: no address": (kinds.PODS, [pod()], ("pod_at", "None"), None),
    "pod: no name is an address": (kinds.PODS, [pod()], ("pod_at", "web"), None),
    "pod: it has ended": (
        kinds.PODS,
        [pod(status={**at("10.0.0.1"), **ENDED})],
        ("pod_at", "10.0.0.1"),
        None,
    ),
    "pod: the address of its node": (
        kinds.PODS,
        [pod(status=at("10.0.0.1"), **ON_HOST)],
        ("pod_at", "10.0.0.1"),
        None,
    ),
    "pods of the host": (
        kinds.PODS,
        [pod("a", **ON_HOST), pod("b"), pod("c", status=ENDED, **ON_HOST), pod("d", nodeName="x", **ON_HOST)],
        ("pods_on_host", "a"),
        ["a"],
    ),
    "host port": (
        kinds.PODS,
        [
            pod("a", ports=[{"containerPort": 80}, host_port(8080)]),
            pod("b", ports=[host_port(8081)]),
            pod("c", ports=[host_port(8080)], nodeName="x"),
            pod("d", ports=[host_port(8080)], status=ENDED),
            pod("e", ports=[host_port(8080)], **ON_HOST),
            pod("f", initContainers=[{"name": "i", "image": "x", "ports": [host_port(8080)]}]),
        ],
        ("pods_with_host_port", "a", 8080),
        ["a", "f"],
    ),
    "protocol": (
        kinds.PODS,
        [pod("a", image="redis"), pod("b"), pod("c", image="redis", status=ENDED)],
        ("pods_that_speak", "redis"),
        ["a"],
    ),
    **{
        f"service: {what}": (
            kinds.SERVICES,
            [service(**fields)],
            ("services_at", address),
            ["web"] if found else [],
        )
        for what, fields, address, found in (
            ("its address", {"clusterIPs": ["10.1.0.1"]}, "10.1.0.1", True),
            ("its only address", {"clusterIP": "10.1.0.1"}, "10.1.0.1", True),
            ("an address of two families", {"clusterIPs": ["10.1.0.1", V6]}, V6_LONG, True),
            ("an external address", {"clusterIP": "10.1.0.1", "externalIPs": ["1.2.3.4"]}, "1.2.3.4", True),
            ("no address", {"clusterIP": "None"}, "None", False),
            ("a balanced address", {"balanced": [{"ip": "5.6.7.8", "ipMode": "VIP"}]}, "5.6.7.8", True),
            ("a balanced address of before ipMode", {"balanced": [{"ip": "5.6.7.8"}]}, "5.6.7.8", True),
            ("an address of a proxy", {"balanced": [{"ip": "5.6.7.8", "ipMode": "Proxy"}]}, "5.6.7.8", False),
            ("a balanced name", {"balanced": [{"hostname": "x.y"}]}, "x.y", False),
        )
    },
    "node port": (
        kinds.SERVICES,
        [
            service("a", ports=[{"port": 80}, {"port": 81, "nodePort": 30080}]),
            service("b", ports=[{"port": 80}]),
        ],
        ("services_on_node_port", 30080),
        ["a"],
    ),
    "node port of a health check": (
        kinds.SERVICES,
        [service("a", healthCheckNodePort=30081)],
        ("services_on_node_port", 30081),
        ["a"],
    ),
    "slices": (
        kinds.ENDPOINT_SLICES,
        [slice_of("1"), slice_of("2"), slice_of("3", of="db"), slice_of("4", of="")],
        ("slices", "default", "web"),
        ["1", "2"],
    ),
    "services of an endpoint": (
        kinds.ENDPOINT_SLICES,
        [slice_of("1", V6), slice_of("2", "10.0.0.1", of="db")],
        ("services_of_endpoint", V6_LONG),
        [("default", "web")],
    ),
    **{
        f"node: {kind}": (kinds.NODES, [node("a", (kind, "10.2.0.1"))], ("node_at", "10.2.0.1"), found)
        for kind, found in (
            ("InternalIP", "a"),
            ("ExternalIP", "a"),
            ("Hostname", None),
            ("InternalDNS", None),
        )
    },
    "zone": (kinds.NODES, [node(**{"topology.kubernetes.io/zone": "z"})], ("zone_of", "a"), "z"),
    "no zone": (kinds.NODES, [node()], ("zone_of", "a"), ""),
    "zone of no node": (kinds.NODES, [], ("zone_of", "a"), ""),
    "control plane": (
        kinds.NODES,
        [node("c", **CONTROL_PLANE), node("b", **CONTROL_PLANE), node("a")],
        ("control_plane_node",),
        "b",
    ),
    "no control plane": (kinds.NODES, [node("a")], ("control_plane_node",), None),
    "namespace": (
        kinds.NAMESPACES,
        [{"metadata": {"name": "default", "labels": {"a": "b"}}}],
        ("namespace_labels", "default"),
        {"a": "b"},
    ),
    "no namespace": (kinds.NAMESPACES, [], ("namespace_labels", "default"), None),
    "class": (
        kinds.INGRESS_CLASSES,
        [ingress_class("a", "x/a"), ingress_class("b", "x/b", default="true")],
        ("ingress_controller", "a"),
        "x/a",
    ),
    "default class": (
        kinds.INGRESS_CLASSES,
        [ingress_class("a", "x/a"), ingress_class("b", "x/b", default="true")],
        ("ingress_controller", ""),
        "x/b",
    ),
    "no default class": (kinds.INGRESS_CLASSES, [ingress_class("a", "x/a")], ("ingress_controller", ""), ""),
    "no class": (kinds.INGRESS_CLASSES, [], ("ingress_controller", "a"), ""),
}


@pytest.mark.parametrize(("resource", "objects", "question", "answer"), ANSWERS.values(), ids=ANSWERS)
async def test_view(parts, resource, objects, question, answer):
    parts.put(resource, *objects)
    method, *arguments = question
    found = getattr(parts.view, method)(*arguments)
    assert (found if isinstance(answer, dict) or "endpoint" in method else names(found)) == answer


# --- nodes without kube-proxy


def proxy(on="a", uid="1", image="registry.k8s.io/kube-proxy:v1", phase="Running", **spec):
    fields = {"image": image, "status": {"phase": phase}, "uid": uid}
    return pod(f"kube-proxy-{on}", nodeName=on, **fields, **{**ON_HOST, **spec})


WEB = service(clusterIP="10.1.0.1", ports=[{"port": 80, "nodePort": 30080}])


@pytest.fixture
async def with_proxy(parts):
    parts.put(kinds.SERVICES, WEB)
    parts.put(kinds.ENDPOINT_SLICES, slice_of("1", "10.0.0.1"))
    parts.put(kinds.PODS, proxy())
    parts.calls = []
    parts.view.on_other_rules(lambda: parts.calls.append(1))
    return parts


def drop_service(parts):
    parts.remove(kinds.SERVICES, WEB)
    parts.remove(kinds.ENDPOINT_SLICES, slice_of("1", "10.0.0.1"))


def is_old(parts, on="a"):
    """Return whether the rules of a node are those of before the Service was deleted."""
    return parts.view.rules_on(on).service("default", "web") is not None


ENDS = {
    "deleted": lambda parts: parts.remove(kinds.PODS, proxy()),
    "ended": lambda parts: parts.put(kinds.PODS, proxy(phase="Failed")),
    "replaced by one that does not run": lambda parts: parts.put(kinds.PODS, proxy(uid="2", phase="Pending")),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_rules_of_a_node_without_kube_proxy_stay(with_proxy, end):
    end(with_proxy)
    assert with_proxy.calls == [1]
    drop_service(with_proxy)
    rules = with_proxy.view.rules_on("a")
    assert with_proxy.view.rules_of_nodes() is rules.rules_on("a") is rules
    assert names(rules.service("default", "web")) == "web"
    assert rules.service("other", "web") is rules.service("default", "db") is None
    assert names(rules.services_at("10.1.0.1")) == names(rules.services_on_node_port(30080)) == ["web"]
    assert names(rules.slices("default", "web")) == ["1"]
    assert (
        rules.services_at("10.1.0.2") == rules.slices("default", "db") == rules.services_on_node_port(1) == ()
    )
    assert not is_old(with_proxy, "b")


def test_everything_but_services_is_that_of_now(with_proxy):
    ENDS["deleted"](with_proxy)
    rules = with_proxy.view.rules_on("a")
    with_proxy.put(
        kinds.PODS, pod(status=at("10.0.0.1"), image="redis", ports=[host_port(8080)]), pod("h", **ON_HOST)
    )
    with_proxy.put(kinds.NODES, node("a", ("InternalIP", "10.2.0.1"), **{"topology.kubernetes.io/zone": "z"}))
    with_proxy.put(kinds.NAMESPACES, {"metadata": {"name": "default", "labels": {"a": "b"}}})
    with_proxy.put(kinds.INGRESS_CLASSES, ingress_class("a", "x/a"))
    for resource in (kinds.INGRESSES, kinds.NETWORK_POLICIES):
        with_proxy.put(resource, {"metadata": {"name": "i", "namespace": "default"}, "spec": {}})
    assert names(rules.pod_at("10.0.0.1")) == "web"
    assert names(rules.node_at("10.2.0.1")) == "a"
    assert (rules.zone_of("a"), rules.namespace_labels("default")) == ("z", {"a": "b"})
    assert names(rules.pods_that_speak("redis")) == names(rules.pods_with_host_port("a", 8080)) == ["web"]
    assert names(rules.pods_on_host("a")) == ["h"]
    assert names(rules.policies("default")) == names(rules.ingresses()) == ["i"]
    assert rules.ingress_controller("a") == "x/a"
    assert rules.services_of_endpoint("10.0.0.1") == [("default", "web")]


def test_rules_change_while_another_kube_proxy_of_the_node_runs(with_proxy):
    second = proxy(uid="2")
    second["metadata"]["name"] = "second"
    with_proxy.put(kinds.PODS, second)
    with_proxy.remove(kinds.PODS, proxy())
    drop_service(with_proxy)
    assert not is_old(with_proxy)
    assert with_proxy.calls == []


def test_rules_of_nodes_are_those_of_now_while_kube_proxy_runs_on_any(with_proxy):
    with_proxy.put(kinds.PODS, proxy("b", "2"))
    ENDS["deleted"](with_proxy)
    drop_service(with_proxy)
    assert is_old(with_proxy)
    assert not is_old(with_proxy, "b")
    assert with_proxy.view.rules_of_nodes() is with_proxy.view
    assert with_proxy.calls == []


@pytest.mark.parametrize("change", ["kube-proxy runs again", "the node is deleted"])
def test_rules_are_those_of_now(with_proxy, change):
    with_proxy.put(kinds.NODES, node("a"))
    ENDS["deleted"](with_proxy)
    drop_service(with_proxy)
    if change == "the node is deleted":
        with_proxy.remove(kinds.NODES, node("a"))
    else:
        with_proxy.put(kinds.PODS, proxy(uid="3", phase="Pending"))
        assert is_old(with_proxy)
        with_proxy.put(kinds.PODS, proxy(uid="3"))
    assert not is_old(with_proxy)
    assert with_proxy.calls == [1, 1]


@pytest.mark.parametrize(
    ("image", "spec"),
    [
        ("registry.k8s.io/kube-proxy:v1", {"hostNetwork": False}),
        ("registry.k8s.io/my-kube-proxy:v1", {}),
        ("registry.k8s.io/kube-proxy-other:v1", {}),
    ],
)
def test_pod_that_is_not_kube_proxy_has_no_rules(parts, image, spec):
    parts.put(kinds.SERVICES, WEB)
    parts.put(kinds.PODS, proxy(image=image, **spec))
    parts.remove(kinds.PODS, proxy(image=image, **spec))
    parts.remove(kinds.SERVICES, WEB)
    assert not is_old(parts)


@pytest.mark.parametrize("image", ["kube-proxy", "x/kube-proxy-amd64:v1", "kube-proxy@sha256:0"])
def test_image_of_kube_proxy(parts, image):
    parts.put(kinds.SERVICES, WEB)
    parts.put(kinds.PODS, proxy(image=image))
    parts.remove(kinds.PODS, proxy(image=image))
    parts.remove(kinds.SERVICES, WEB)
    assert is_old(parts)
