"""What crictl prints of the pods, containers and images of a node, and ip of its interfaces and routes."""

from datetime import UTC, datetime

import pytest

from mockube.container_runtime.image_service import StoredImage
from mockube.kubelet.node_machine import cri_objects
from mockube.kubelet.node_machine.machine_network import interfaces, routes

STARTED, BEFORE = "2030-01-01T00:00:00Z", "2029-01-01T00:00:00Z"
NANO, BEFORE_NANO = "1893456000000000000", "1861920000000000000"
RUNS = {"running": {"startedAt": STARTED}}
ENDED = {
    "terminated": {
        "startedAt": STARTED,
        "finishedAt": STARTED,
        "exitCode": 3,
        "reason": "Error",
        "message": "m",
        "containerID": "x://2",
    }
}
LAST = {"terminated": {"startedAt": BEFORE, "finishedAt": BEFORE, "exitCode": 1, "containerID": "x://1"}}


def status(state=(), last=(), restarts=0, name="c", **fields):
    return {"name": name, "state": dict(state), "lastState": dict(last), "restartCount": restarts, **fields}


def pod(
    *statuses, phase="Running", field="containerStatuses", start=STARTED, metadata=(), container=(), **fields
):
    of_pod = {"phase": phase, "startTime": start, field: [*statuses], **fields.pop("status", {})}
    head = {"name": "web", "namespace": "a", "uid": "u", "labels": {"x": "y"}, "annotations": {"k": "v"}}
    spec = {"containers": [{"name": "c", "image": "nginx", **dict(container)}], **fields}
    return {"metadata": {**head, **dict(metadata)}, "spec": spec, "status": of_pod}


@pytest.mark.parametrize(
    ("phase", "state"),
    [
        ("Running", "SANDBOX_READY"),
        ("Pending", "SANDBOX_READY"),
        ("Succeeded", "SANDBOX_NOTREADY"),
        ("Failed", "SANDBOX_NOTREADY"),
    ],
)
def test_sandbox_is_ready_until_its_pod_has_ended(phase, state):
    (found,) = cri_objects.sandboxes([pod(phase=phase), pod(start=None), {"metadata": {"uid": "u"}}])
    assert (found["state"], found["createdAt"], found["annotations"]) == (state, NANO, {"k": "v"})
    assert found["labels"] == {
        "x": "y",
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "a",
        "io.kubernetes.pod.uid": "u",
    }


@pytest.mark.parametrize(
    ("entry", "runs"),
    [
        (status(RUNS, containerID="x://1"), [("1", 0, "CONTAINER_RUNNING", NANO)]),
        (status(ENDED), [("2", 0, "CONTAINER_EXITED", NANO)]),
        (
            status(RUNS, LAST, 2, containerID="x://3"),
            [("3", 2, "CONTAINER_RUNNING", NANO), ("1", 1, "CONTAINER_EXITED", BEFORE_NANO)],
        ),
        (
            status(RUNS, LAST, containerID="x://3"),
            [("3", 0, "CONTAINER_RUNNING", NANO), ("1", 0, "CONTAINER_EXITED", BEFORE_NANO)],
        ),
        (status({"waiting": {}}, LAST, 2), [("1", 2, "CONTAINER_EXITED", BEFORE_NANO)]),
        (status({"waiting": {}}), []),
        (status(RUNS, name="unknown"), []),
    ],
    ids=[
        "runs",
        "ended",
        "runs again",
        "runs again without a count",
        "waits",
        "never ran",
        "no container of the pod",
    ],
)
def test_runs_of_a_container(entry, runs):
    found = cri_objects.containers([pod(entry), {"metadata": {}, "spec": {}}])
    assert [
        (each["id"], each["metadata"]["attempt"], each["state"], each["createdAt"]) for each in found
    ] == runs
    assert [each["annotations"]["io.kubernetes.container.restartCount"] for each in found] == [
        str(run[1]) for run in runs
    ]


@pytest.mark.parametrize(
    "field", ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"]
)
def test_containers_of_all_kinds_are_listed(field):
    (found,) = cri_objects.containers([pod(status(RUNS), field=field)])
    assert len(found["id"]) == 64  # a kubelet that reports no id


@pytest.mark.parametrize(
    ("fields", "reference", "image"),
    [
        ({"imageID": "r/nginx@sha256:1", "image": "nginx:1"}, "r/nginx@sha256:1", "sha256:1"),
        ({"image": "nginx:1"}, "nginx:1", "nginx:1"),
        ({}, "nginx", "nginx"),
    ],
)
def test_image_of_a_container(fields, reference, image):
    (found,) = cri_objects.containers([pod(status(RUNS, **fields))])
    assert (found["imageRef"], found["image"]["image"]) == (reference, image)
    assert found["image"]["userSpecifiedImage"] == "nginx"


COMMAND = {"command": ["a"], "args": ["b"], "env": [{"name": "N"}, {"name": "M", "value": "v"}]}
LIMITS = {"resources": {"requests": {"cpu": "1"}, "limits": {}}}


@pytest.mark.parametrize(
    ("position", "times", "end"),
    [
        (0, (STARTED, STARTED, STARTED), (3, "Error", "m")),
        (1, (BEFORE, BEFORE, BEFORE), (1, "", "")),
    ],
    ids=["present run", "run before"],
)
def test_inspection_of_a_run(position, times, end):
    tree = pod(status(ENDED, LAST, 1), container={**COMMAND, **LIMITS})
    found = cri_objects.status_of_container(cri_objects.containers([tree])[position], tree, "/log", {})
    described = found["status"]
    assert tuple(described[name] for name in ("createdAt", "startedAt", "finishedAt")) == times
    assert tuple(described[name] for name in ("exitCode", "reason", "message")) == end
    assert described["resources"] == {"linux": {"requests": {"cpu": "1"}}}
    config = found["info"]["config"]
    assert (config["command"], config["args"]) == (["a"], ["b"])
    assert config["envs"] == [{"key": "N", "value": ""}, {"key": "M", "value": "v"}]


def test_inspection_of_a_container_that_runs_has_no_end():
    tree = pod(status(RUNS))
    (item,) = cri_objects.containers([tree])
    described = cri_objects.status_of_container(item, tree, "/log", {})["status"]
    assert (described["finishedAt"], described["exitCode"], described["startedAt"]) == (
        "0001-01-01T00:00:00Z",
        0,
        STARTED,
    )
    gone = cri_objects.status_of_container(item, pod(), "/log", {})["status"]
    assert gone["startedAt"] == ""


@pytest.mark.parametrize(
    ("ips", "host", "network", "mode"),
    [
        (["10.0.0.1", "fd00::1"], False, {"ip": "10.0.0.1", "additionalIps": [{"ip": "fd00::1"}]}, "POD"),
        ([], True, {"ip": "", "additionalIps": []}, "NODE"),
    ],
)
def test_inspection_of_a_sandbox(ips, host, network, mode):
    tree = pod(hostNetwork=host, status={"podIPs": [{"ip": each} for each in ips]})
    (item,) = cri_objects.sandboxes([tree])
    found = cri_objects.status_of_sandbox(item, tree)
    assert found["status"]["network"] == network
    assert found["status"]["linux"]["namespaces"]["options"]["network"] == mode
    assert (found["status"]["createdAt"], found["info"]["containers"]) == (STARTED, ["c"])


def test_images_of_a_node_are_sorted_by_tag():
    stored = [
        StoredImage(names=("r/b:1", "r/b@sha256:2"), size=7),
        StoredImage(names=("r/a:1",), size=5),
        StoredImage(names=("r/c@sha256:1",), size=6),
    ]
    digest, tagged, both = cri_objects.images(stored, ["r/b:1"])
    assert (digest["id"], digest["repoTags"], digest["repoDigests"]) == ("sha256:1", [], ["r/c@sha256:1"])
    assert (len(tagged["id"]), tagged["repoTags"], tagged["size"]) == (64, ["r/a:1"], "5")
    assert (both["id"], both["repoTags"]) == ("sha256:2", ["r/b:1"])
    assert [each["inUse"] for each in (digest, tagged, both)] == [False, False, True]


def test_usage_of_a_container_is_in_whole_units():
    (item,) = cri_objects.containers([pod(status(RUNS))])
    at = datetime(2030, 1, 1, tzinfo=UTC)
    found = cri_objects.stats(item, cores=0.25, memory=1024.4, disk=10, at=at)
    assert found["cpu"] == {"timestamp": NANO, "usageNanoCores": {"value": "250000000"}}
    assert found["memory"]["workingSetBytes"] == found["memory"]["usageBytes"] == {"value": "1024"}
    assert found["writableLayer"]["usedBytes"] == {"value": "10"}


# --- the network of a machine


def node(address="", *cidrs):
    addresses = [{"type": "InternalIP", "address": address}] if address else []
    return {"metadata": {"name": "n"}, "spec": {"podCIDRs": [*cidrs]}, "status": {"addresses": addresses}}


LO = ("lo", "00:00:00:00:00:00", "127.0.0.1/8")
ETH0 = ("eth0", "02:42:0a:02:00:01", "10.2.0.1/16")
CNI0 = ("cni0", "02:42:0a:80:01:01", "10.128.1.1/24")
TO_ALL = ["default via 10.2.0.1 dev eth0", "10.2.0.0/16 dev eth0 proto kernel scope link src 10.2.0.1"]
TO_PODS = "10.128.1.0/24 dev cni0 proto kernel scope link src 10.128.1.1"


@pytest.mark.parametrize(
    ("tree", "links", "lines"),
    [
        (node(), [LO], []),
        (node("10.2.0.1"), [LO, ETH0], TO_ALL),
        (node("10.2.0.1", "10.128.1.0/24", "fd00::/64"), [LO, ETH0, CNI0], [*TO_ALL, TO_PODS]),
        (node("fd00::1"), [LO, ("eth0", "02:42:00:00:00:01", "fd00::1/16")], []),
        ({"metadata": {"name": "n"}}, [LO], []),
    ],
    ids=["no address", "address", "pods", "IPv6", "no spec"],
)
def test_network_of_a_node(tree, links, lines):
    assert [(name, hardware, address) for name, _, _, hardware, address in interfaces(tree)] == links
    assert routes(tree) == lines
