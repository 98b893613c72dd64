"""Printer columns of the core group; the status of pods is in `pod`."""

from functools import partial

import pytest

from tests.support.server.printed_columns import printed_cells, time_ago

core = partial(printed_cells, "")


def test_pod_wide_columns():
    cells = core(
        "Pod",
        {
            "spec": {
                "nodeName": "n1",
                "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}, {"conditionType": "c"}],
            },
            "status": {
                "podIPs": [{"ip": "10.1.2.3"}, {"ip": "fd00::3"}],
                "nominatedNodeName": "n2",
                "conditions": [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}],
            },
        },
    )
    assert cells["IP"] == "10.1.2.3"
    assert (cells["Node"], cells["Nominated Node"], cells["Readiness Gates"]) == ("n1", "n2", "1/3")


def test_pod_wide_columns_without_values():
    cells = core("Pod", {})
    assert [cells[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")] == ["<none>"] * 4


TEMPLATE = {
    "metadata": {"labels": {"b": "2", "a": "1"}},
    "spec": {"containers": [{"name": "one", "image": "i:1"}, {"name": "two", "image": "i:2"}]},
}


def test_pod_template_columns():
    cells = core("PodTemplate", {"template": TEMPLATE})
    assert cells == {"Name": "x", "Containers": "one,two", "Images": "i:1,i:2", "Pod Labels": "a=1,b=2"}


def test_replication_controller_columns():
    tree = {
        "spec": {"replicas": 3, "selector": {"app": "web"}, "template": TEMPLATE},
        "status": {"replicas": 2, "readyReplicas": 1},
    }
    assert core("ReplicationController", tree) == {
        "Name": "x",
        "Desired": 3,
        "Current": 2,
        "Ready": 1,
        "Age": "5m",
        "Containers": "one,two",
        "Images": "i:1,i:2",
        "Selector": "app=web",
    }


@pytest.mark.parametrize(
    ("conditions", "unschedulable", "expected"),
    [
        pytest.param([], False, "Unknown", id="no conditions"),
        pytest.param([{"type": "Ready", "status": "True"}], False, "Ready", id="ready"),
        pytest.param([{"type": "Ready", "status": "False"}], False, "NotReady", id="not ready"),
        pytest.param([{"type": "Ready", "status": "Unknown"}], False, "NotReady", id="unknown"),
        pytest.param([{"type": "DiskPressure", "status": "True"}], False, "Unknown", id="other conditions"),
        pytest.param([{"type": "Ready", "status": "True"}], True, "Ready,SchedulingDisabled", id="cordoned"),
    ],
)
def test_node_status_column(conditions, unschedulable, expected):
    tree = {"spec": {"unschedulable": unschedulable}, "status": {"conditions": conditions}}
    assert core("Node", tree)["Status"] == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, "<none>", id="none"),
        pytest.param(
            {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "any"},
            "control-plane,worker",
            id="by prefix, sorted",
        ),
        pytest.param({"kubernetes.io/role": "infra"}, "infra", id="by value"),
        pytest.param({"kubernetes.io/role": "", "node-role.kubernetes.io/": ""}, "<none>", id="empty ones"),
        pytest.param({"kubernetes.io/role": "a", "node-role.kubernetes.io/a": ""}, "a", id="once"),
    ],
)
def test_node_roles_column(labels, expected):
    assert core("Node", {"metadata": {"labels": labels}})["Roles"] == expected


def test_node_wide_columns():
    tree = {
        "status": {
            "addresses": [
                {"type": "Hostname", "address": "n1"},
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "InternalIP", "address": "10.0.0.2"},
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.0", "kernelVersion": "6.8", "architecture": "arm64"},
        }
    }
    cells = core("Node", tree)
    assert (cells["Internal-IP"], cells["External-IP"]) == ("10.0.0.1", "<none>")
    assert (cells["Version"], cells["Kernel-Version"]) == ("v1.36.0", "6.8 (arm64)")
    assert (cells["OS-Image"], cells["Container-Runtime"]) == ("<unknown>", "<unknown>")


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([], ["x", "Unknown", "", ""], id="component without conditions"),
        pytest.param(
            [{"type": "Healthy", "status": "True", "message": "ok"}], ["x", "Healthy", "ok", ""], id="healthy"
        ),
        pytest.param(
            [{"type": "Healthy", "status": "False", "message": "dial", "error": "refused"}],
            ["x", "Unhealthy", "dial", "refused"],
            id="unhealthy",
        ),
    ],
)
def test_component_status_columns(conditions, expected):
    assert list(core("ComponentStatus", {"conditions": conditions}).values()) == expected


@pytest.mark.parametrize(
    ("spec", "ingress", "expected"),
    [
        pytest.param({"type": "ClusterIP"}, [], "<none>", id="inside only"),
        pytest.param(
            {"type": "ClusterIP", "externalIPs": ["1.1.1.1", "2.2.2.2"]}, [], "1.1.1.1,2.2.2.2", id="own"
        ),
        pytest.param(
            {"type": "NodePort", "externalIPs": ["1.1.1.1"]}, [], "1.1.1.1", id="own at a node port"
        ),
        pytest.param({"type": "LoadBalancer"}, [], "<pending>", id="balancer to come"),
        pytest.param(
            {"type": "LoadBalancer"},
            [
                {"hostname": "a-very-long-name.example.com"},
                {"ip": "9.9.9.9", "hostname": "x"},
                {"ip": "9.9.9.9"},
            ],
            "9.9.9.9,a-very-long-name.example.com",
            id="balancer's points, each once",
        ),
        pytest.param(
            {"type": "LoadBalancer", "externalIPs": ["1.1.1.1"]},
            [{"ip": "9.9.9.9"}],
            "9.9.9.9,1.1.1.1",
            id="both",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "db.example.com"}, [], "db.example.com", id="name"
        ),
        pytest.param({}, [], "<unknown>", id="no type"),
    ],
)
def test_service_external_ip_column(spec, ingress, expected):
    tree = {"spec": spec, "status": {"loadBalancer": {"ingress": ingress}}}
    assert core("Service", tree)["External-IP"] == expected


def test_service_columns():
    tree = {
        "spec": {
            "type": "NodePort",
            "clusterIPs": ["10.0.0.9", "fd00::9"],
            "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
            "selector": {"b": "2", "a": "1"},
        }
    }
    cells = core("Service", tree)
    assert (cells["Type"], cells["Cluster-IP"]) == ("NodePort", "10.0.0.9")
    assert (cells["Port(s)"], cells["Selector"]) == ("80:30080/TCP,53/UDP", "a=1,b=2")


def test_service_columns_without_addresses_and_ports():
    cells = core("Service", {"spec": {"type": "ExternalName"}})
    assert (cells["Cluster-IP"], cells["Port(s)"], cells["Selector"]) == ("<none>",) * 3


def addresses(*ips):
    return [{"ip": ip} for ip in ips]


@pytest.mark.parametrize(
    ("subsets", "expected"),
    [
        pytest.param(None, "<none>", id="no subsets"),
        pytest.param(
            [{"notReadyAddresses": addresses("1.1.1.1"), "ports": [{"port": 80}]}], "", id="none ready"
        ),
        pytest.param([{"addresses": addresses("1.1.1.1", "::2")}], "1.1.1.1,::2", id="no ports"),
        pytest.param(
            [{"addresses": addresses("1.1.1.1", "::2"), "ports": [{"port": 80}]}],
            "1.1.1.1:80,[::2]:80",
            id="one port",
        ),
        pytest.param(
            [
                {"addresses": addresses("1.1.1.1", "2.2.2.2"), "ports": [{"port": 80}, {"port": 443}]},
                {"addresses": addresses("3.3.3.3"), "ports": [{"port": 9}]},
            ],
            "1.1.1.1:80,2.2.2.2:80,1.1.1.1:443 + 2 more...",
            id="more than three",
        ),
    ],
)
def test_endpoints_columns(subsets, expected):
    assert core("Endpoints", {"subsets": subsets})["Endpoints"] == expected


def test_persistent_volume_columns():
    tree = {
        "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
        "spec": {
            "capacity": {"storage": "1024Mi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "ns", "name": "data"},
            "storageClassName": "new",
            "volumeAttributesClassName": "gold",
            "volumeMode": "Block",
        },
        "status": {"phase": "Bound", "reason": "because"},
    }
    assert list(core("PersistentVolume", tree).values()) == [
        "x", "1Gi", "RWO,ROX,RWX,RWOP", "Retain", "Bound", "ns/data", "old", "gold", "because", "5m", "Block",
    ]  # fmt: skip


def test_persistent_volume_columns_of_empty_object():
    assert list(core("PersistentVolume", {}).values()) == [
        "x", "0", "", "", "", "", "", "<unset>", "", "5m", "<unset>",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("volume", "expected"),
    [pytest.param("", ("", "", ""), id="unbound"), pytest.param("pv", ("pv", "5Gi", "RWO"), id="bound")],
)
def test_claim_columns_need_bound_volume(volume, expected):
    status = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"]}
    cells = core("PersistentVolumeClaim", {"spec": {"volumeName": volume}, "status": status})
    assert (cells["Volume"], cells["Capacity"], cells["Access Modes"]) == expected


@pytest.mark.parametrize("kind", ["PersistentVolume", "PersistentVolumeClaim"])
def test_deleted_object_with_finalizer_is_terminating(kind):
    tree = {"metadata": {"deletionTimestamp": time_ago(seconds=1)}, "status": {"phase": "Bound"}}
    assert core(kind, tree)["Status"] == "Terminating"


@pytest.mark.parametrize(
    ("kind", "tree", "expected"),
    [
        ("Namespace", {"status": {"phase": "Terminating"}}, ["x", "Terminating", "5m"]),
        ("ConfigMap", {"data": {"a": "1"}, "binaryData": {"b": "MQ==", "c": ""}}, ["x", 3, "5m"]),
        ("Secret", {"type": "Opaque", "data": {"a": "MQ=="}}, ["x", "Opaque", 1, "5m"]),
        ("ServiceAccount", {"secrets": [{"name": "s"}]}, ["x", "5m"]),
    ],
)
def test_columns_of_other_core_kinds(kind, tree, expected):
    assert list(core(kind, tree).values()) == expected


def test_resource_quota_columns():
    hard = {"pods": "5", "limits.cpu": "2", "requests.cpu": "1500m", "limits.memory": "1Gi", "limits": "1"}
    tree = {"status": {"hard": hard, "used": {"pods": "3", "limits.cpu": "0.5"}}}
    cells = core("ResourceQuota", tree)
    assert cells["Request"] == "limits: 0/1, pods: 3/5, requests.cpu: 0/1500m"
    assert cells["Limit"] == "limits.cpu: 500m/2, limits.memory: 0/1Gi"
