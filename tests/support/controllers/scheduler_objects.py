"""Nodes and pods for tests of filters and scores, and the snapshot that these read."""

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.schema.minors import NEWEST
from mockube.client.podview import PodView
from mockube.scheduler.cluster import ClusterSnapshot, SchedulerCache
from mockube.scheduler.failure import failure_of, may_preempt
from mockube.scheduler.filters.filter import Rejection, Restriction
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.pods import nominated_node
from mockube.scheduler.preemption import Preemption, find_candidates
from mockube.scheduler.profiles import DEFAULT_PROFILE
from mockube.scheduler.volumes import Storage, stored

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def node(name="a", *, zone=None, cpu="4", memory="8Gi", pods="9", labels=(), status=(), **spec):
    labels = {HOST: name, **({} if zone is None else {ZONE: zone}), **dict(labels)}
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable, **dict(status)},
    }


def pod(name="web", *, namespace="default", labels=(), metadata=(), status=(), requests=(), **spec):
    """Return a pod with one container; with `nodeName` it runs on that node."""
    container = {"name": "c", "image": "i", "resources": {"requests": dict(requests)}}
    own = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1", "labels": dict(labels)}
    return {
        "metadata": {**own, **dict(metadata)},
        "spec": {"containers": [container], **spec},
        "status": dict(status),
    }


def term(key, labels, **fields):
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **fields}


def preferred(weight, key, labels, **fields):
    return {"weight": weight, "podAffinityTerm": term(key, labels, **fields)}


def near(*terms):
    """Return the affinity to pods that terms match, which are all required or all preferred."""
    return _affinity("podAffinity", terms)


def apart(*terms):
    return _affinity("podAntiAffinity", terms)


def _affinity(kind, terms):
    rule = "preferred" if "weight" in terms[0] else "required"
    return {kind: {f"{rule}DuringSchedulingIgnoredDuringExecution": [*terms]}}


def spread_constraint(key=ZONE, action="DoNotSchedule", **fields):
    """Return a constraint that counts the pods of the app `web`."""
    selector = {"matchLabels": {"app": "web"}}
    own = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": action, "labelSelector": selector}
    return own | fields


def info(tree, gates=None):
    return PodInfo.of(PodView.of(tree), gates or FeatureGates())


def store_of(*objects):
    return stored(objects)


def snapshot(nodes, pods=(), *, minor=NEWEST, settings=(), namespaces=None, storage=None, **more):
    """Return a snapshot of nodes with the pods that name them; others may be nominated for a node.

    `namespaces` has the labels of namespaces, `storage` the objects of the fields of Storage.
    """
    gates = FeatureGates(minor, settings)
    cluster = SchedulerCache(gates)
    for one in nodes:
        cluster.set_node(one)
    for one in pods:
        if "nodeName" in one["spec"]:
            cluster.update_pod(PodView.of(one), one["spec"]["nodeName"])
    nominees = [info(one, gates) for one in pods if "nodeName" not in one["spec"]]
    stores = {"claims": (), "volumes": (), "classes": (), **(storage or {})}
    return ClusterSnapshot(
        nodes=cluster.nodes(),
        labels_of_namespace=lambda name: (namespaces or {}).get(name, {}),
        storage=Storage(**{name: store_of(*objects) for name, objects in stores.items()}),
        nominees=lambda name: [one for one in nominees if nominated_node(one.view.object) == name],
        matching_counts=cluster.matching_counts,
        users_of_claim=cluster.users_of_claim,
        image_sizes=cluster.image_sizes,
        topology_keys=cluster.topology_keys,
        gates=gates,
        **more,
    )


def snapshot_of(cluster):
    """Return the snapshot of a cache that has no volumes, namespaces or workloads."""
    return ClusterSnapshot(
        nodes=cluster.nodes(),
        labels_of_namespace=lambda _: {},
        storage=Storage(claims=store_of(), volumes=store_of(), classes=store_of()),
        matching_counts=cluster.matching_counts,
        users_of_claim=cluster.users_of_claim,
        image_sizes=cluster.image_sizes,
        topology_keys=cluster.topology_keys,
    )


def best_of(pod_class, state):
    groups = pod_class.feasible_groups(state)
    return pod_class.best_nodes(groups, state) if groups else []


def failure_on(pod_info, state, found, budgets=(), profile=DEFAULT_PROFILE):
    """Return what follows if no node is feasible, with the preemption if one is tried."""
    preemption = Preemption()
    if may_preempt(state, found, profile):
        preemption = find_candidates(pod_info, state, found, budgets, profile)
    return failure_of(pod_info, state, found, preemption, profile)


def rejections(plugin, tried, state):
    """Return the rejections of a filter by node; one of all nodes has the name "*"."""
    check = plugin(info(tried, state.gates), state)
    if isinstance(check, Rejection):
        return {"*": check}
    if isinstance(check, Restriction):
        check = check.check
    found = {one.name: None if check is None else check(one) for one in state.nodes}
    return {name: rejection for name, rejection in found.items() if rejection is not None}


def scores(plugin, tried, state, feasible=None):
    """Return the scores of a plugin by node, of those that are feasible; None if it scores all alike."""
    nodes = [one for one in state.nodes if feasible is None or one.name in feasible]
    values = plugin(info(tried, state.gates), state, nodes)
    return None if values is None else {one.name: value for one, value in zip(nodes, values, strict=True)}
