"""The node authorizer allows a node what its pods reference, as kube-apiserver 1.36.3 does."""

import orjson
import pytest

from mockube.apiserver.authz.chain import Attributes, Authorization, Decision, PreparationNeeded
from mockube.apiserver.authz.node import graph as graphs
from mockube.apiserver.authz.node.authorizer import NodeAuthorizer
from mockube.apiserver.authz.node.graph import GROUPS, NodeGraph
from mockube.apiserver.bootstrap.rbac import rules_of_nodes
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import User

NODE = User(name="system:node:n1", groups=("system:nodes",))
UNRELATED = "no relationship found between node 'n1' and this object"


class NodeAuthorizerHarness:
    def __init__(self):
        self.caches = {resource: ResourceCache(f"/{resource}/".encode()) for resource in GROUPS}
        for cache in self.caches.values():
            cache.reset((), 1)
        self.graph = NodeGraph()
        self.graph.watch(self.caches.__getitem__)
        self.authorizer = NodeAuthorizer(self.graph, rules_of_nodes())

    def put(self, resource, name, spec, **more):
        metadata = {"name": name, **more.pop("metadata", {})}
        if resource == "pods":
            metadata["namespace"] = "ns"
        self._change(resource, ChangeKind.MODIFIED, {"metadata": metadata, "spec": spec, **more})

    def remove(self, resource, name):
        self._change(resource, ChangeKind.DELETED, {"metadata": {"name": name}})

    def _change(self, resource, kind, tree):
        cache = self.caches[resource]
        key = cache.prefix + tree["metadata"]["name"].encode()
        if cache.get(key) is None:
            kind = ChangeKind.ADDED
        cache.apply(
            Change(kind, StoredObject(key, orjson.dumps(tree), cache.history.newest + 1), cache.get(key), 0.0)
        )

    def ask(self, verb, resource, name="", *, user=NODE, **more):
        group, _, resource = resource.rpartition("/")
        resource, _, subresource = resource.partition(":")
        return self.authorizer.decide(
            Attributes(
                user=user,
                verb=verb,
                group=group,
                resource=resource,
                subresource=subresource,
                name=name,
                **more,
            )
        )

    def may_get(self, resource, name, namespace="ns"):
        return self.ask("get", resource, name, namespace=namespace)[0] is Decision.ALLOW


POD = {
    "nodeName": "n1",
    "serviceAccountName": "robot",
    "imagePullSecrets": [{"name": "pull"}],
    "initContainers": [{"envFrom": [{"secretRef": {"name": "from"}}, {"configMapRef": {"name": "from"}}]}],
    "containers": [
        {
            "env": [
                {"name": "a", "valueFrom": {"secretKeyRef": {"name": "key"}}},
                {"name": "b", "valueFrom": {"configMapKeyRef": {"name": "key"}}},
                {"name": "c", "value": "x"},
            ]
        }
    ],
    "volumes": [
        {"name": "v1", "secret": {"secretName": "volume"}},
        {"name": "v2", "configMap": {"name": "volume"}},
        {
            "name": "v3",
            "projected": {"sources": [{"secret": {"name": "part"}}, {"configMap": {"name": "part"}}]},
        },
        {"name": "v4", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "v5", "ephemeral": {}},
        {"name": "v6", "csi": {"nodePublishSecretRef": {"name": "csi"}}},
        {"name": "v7", "rbd": {"secretRef": {"name": "rbd"}}},
    ],
    "resourceClaims": [{"name": "r1", "resourceClaimName": "own"}, {"name": "r2"}],
}
STATUS = {"resourceClaimStatuses": [{"name": "r2", "resourceClaimName": "made"}]}
OF_POD = [
    *(("secrets", name) for name in ("pull", "from", "key", "volume", "part", "csi", "rbd")),
    *(("configmaps", name) for name in ("from", "key", "volume", "part")),
    *(("persistentvolumeclaims", name) for name in ("claim", "p-v5")),
    *(("resource.k8s.io/resourceclaims", name) for name in ("own", "made")),
    ("serviceaccounts", "robot"),
    ("pods", "p"),
]


@pytest.mark.parametrize(("resource", "name"), OF_POD)
def test_node_reads_objects_referenced_by_its_pods(resource, name):
    cluster = NodeAuthorizerHarness()
    assert not cluster.may_get(resource, name)
    cluster.put("pods", "p", POD, status=STATUS)
    assert cluster.may_get(resource, name)
    assert not cluster.may_get(resource, name, namespace="other")
    assert not cluster.may_get(resource, "another")
    cluster.put("pods", "p", POD | {"nodeName": "n2"}, status=STATUS)
    assert cluster.ask("get", resource, name, namespace="ns") == (Decision.NO_OPINION, UNRELATED)
    cluster.put("pods", "p", POD, status=STATUS)
    cluster.put("pods", "q", POD, status=STATUS)
    cluster.remove("pods", "p")
    assert cluster.may_get(resource, name) == (name not in ("p", "p-v5"))
    cluster.remove("pods", "q")
    assert not cluster.may_get(resource, name)


def test_mirror_pod_grants_no_access():
    cluster = NodeAuthorizerHarness()
    cluster.put("pods", "p", POD, metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    assert cluster.may_get("pods", "p")
    assert not cluster.may_get("secrets", "key")


def test_claim_grants_node_its_volume_and_secrets():
    cluster = NodeAuthorizerHarness()
    source = {"nodeStageSecretRef": {"namespace": "vault", "name": "s"}}
    own = {"controllerPublishSecretRef": {"namespace": "vault", "name": "t"}}
    cluster.put(
        "persistentvolumes", "v", {"claimRef": {"namespace": "ns", "name": "claim"}, "csi": source | own}
    )
    assert not cluster.may_get("persistentvolumes", "v", namespace="")
    cluster.put("pods", "p", POD)
    assert cluster.may_get("persistentvolumes", "v", namespace="")
    assert cluster.may_get("secrets", "s", namespace="vault")
    assert not cluster.may_get("secrets", "t", namespace="vault")
    cluster.put("persistentvolumes", "v", {"csi": source})
    assert not cluster.may_get("persistentvolumes", "v", namespace="")
    assert not cluster.may_get("secrets", "s", namespace="vault")


@pytest.mark.parametrize(
    ("resource", "name"),
    [("storage.k8s.io/volumeattachments", "a"), ("resource.k8s.io/resourceslices", "s")],
)
def test_node_accesses_only_its_own_objects(resource, name):
    cluster = NodeAuthorizerHarness()
    cluster.put(resource.rpartition("/")[2], name, {"nodeName": "n1"})
    assert cluster.may_get(resource, name, namespace="")
    cluster.put(resource.rpartition("/")[2], name, {"nodeName": "n2"})
    assert not cluster.may_get(resource, name, namespace="")


ALLOWED = ""


@pytest.mark.parametrize(
    ("verb", "resource", "name", "more", "reason"),
    [
        ("list", "secrets", "", {"namespace": "ns"}, "No Object name found"),
        ("list", "secrets", "x", {}, "can only read namespaced object of this type"),
        ("update", "secrets", "x", {"namespace": "ns"}, "can only read resources of this type"),
        ("list", "persistentvolumes", "", {}, "can only get individual resources of this type"),
        ("update", "persistentvolumeclaims:status", "x", {"namespace": "ns"}, UNRELATED),
        ("create", "persistentvolumeclaims:status", "x", {}, "can only get/update/patch this type"),
        ("create", "serviceaccounts:token", "x", {"namespace": "ns"}, UNRELATED),
        ("create", "serviceaccounts", "", {}, "can only create tokens for individual service accounts"),
        ("create", "coordination.k8s.io/leases", "", {"namespace": "kube-node-lease"}, ALLOWED),
        ("get", "coordination.k8s.io/leases", "n1", {"namespace": "kube-node-lease"}, ALLOWED),
        (
            "get",
            "coordination.k8s.io/leases",
            "n2",
            {"namespace": "kube-node-lease"},
            "can only access node lease with the same name as the requesting node",
        ),
        (
            "get",
            "coordination.k8s.io/leases",
            "n1",
            {"namespace": "default"},
            'can only access leases in the "kube-node-lease" system namespace',
        ),
        (
            "list",
            "coordination.k8s.io/leases",
            "",
            {"namespace": "kube-node-lease"},
            "can only get, create, update, patch, or delete a node lease",
        ),
        ("update", "storage.k8s.io/csinodes", "n1", {}, ALLOWED),
        (
            "get",
            "storage.k8s.io/csinodes",
            "n2",
            {},
            "can only access CSINode with the same name as the requesting node",
        ),
        ("get", "nodes", "n1", {}, ALLOWED),
        ("update", "nodes:status", "n2", {}, ALLOWED),
        ("get", "nodes", "n2", {}, "node 'n1' cannot read 'n2', only its own Node object"),
        ("list", "nodes", "", {}, "node 'n1' cannot read all nodes, only its own Node object"),
        ("list", "pods", "", {"field_selector": "spec.nodeName=n1"}, ALLOWED),
        (
            "list",
            "pods",
            "",
            {"field_selector": "spec.nodeName!=n1"},
            "can only list/watch pods with spec.nodeName field selector",
        ),
        ("create", "pods:eviction", "x", {"namespace": "ns"}, ALLOWED),
        ("list", "services", "", {}, ALLOWED),
        (
            "list",
            "resource.k8s.io/resourceslices",
            "",
            {},
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
    ],
)
def test_node_authorizer_decision_has_reason(verb, resource, name, more, reason):
    expected = (Decision.ALLOW, "") if reason == ALLOWED else (Decision.NO_OPINION, reason)
    assert NodeAuthorizerHarness().ask(verb, resource, name, **more) == expected


def test_users_outside_system_nodes_get_no_opinion():
    cluster = NodeAuthorizerHarness()
    for user in (User(name="system:node:n1"), User(name="bob", groups=("system:nodes",))):
        assert cluster.ask("get", "nodes", "n1", user=user) == (Decision.NO_OPINION, "")
    nameless = User(name="system:node:", groups=("system:nodes",))
    reason = 'unknown node for user "system:node:"'
    assert cluster.ask("get", "nodes", "n1", user=nameless) == (Decision.NO_OPINION, reason)


def test_rules_of_nodes_are_incomplete():
    rules = NodeAuthorizerHarness().authorizer.rules(NODE, "ns")
    assert (rules.is_incomplete, rules.error) == (
        True,
        "node authorizer does not support user rule resolution",
    )


async def test_node_graph_is_built_between_other_requests():
    cluster = NodeAuthorizerHarness()
    for number in range(graphs.MAX_SYNCHRONOUS_CHANGES + 1):
        cluster.put("pods", f"p{number}", POD)
    with pytest.raises(PreparationNeeded):
        cluster.ask("get", "secrets", "key", namespace="ns")
    question = Attributes(user=NODE, verb="get", resource="secrets", name="key", namespace="ns")
    assert (await Authorization([cluster.authorizer]).authorize(question))[0] is Decision.ALLOW
    assert Authorization([cluster.authorizer]).is_allowed(question)


def test_unread_node_graph_changes_are_bounded(monkeypatch):
    monkeypatch.setattr(graphs, "MAX_QUEUED_CHANGES", 10)
    cluster = NodeAuthorizerHarness()
    cluster.may_get("secrets", "key")
    for number in range(100):
        cluster.put("pods", f"p{number}", POD)
        cluster.remove("pods", f"p{number}")
    assert len(cluster.graph._noted) <= 11
    cluster.put("pods", "p", POD)
    assert cluster.may_get("secrets", "key")
