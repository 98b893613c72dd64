"""Decisions of a kube-scheduler, and ours on the same state of a cluster."""

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.cache.store import Change
from mockube.client.component_helpers.device_claims import allocation
from mockube.client.podview import PodView
from mockube.scheduler.choice import best_nodes, find_feasible, scores_by_plugin
from mockube.scheduler.cluster import ClusterSnapshot, SchedulerCache
from mockube.scheduler.devices.claims import DeviceSnapshot, allocate, device_ids
from mockube.scheduler.devices.extended_resources import (
    ExtendedResourceClasses,
    owner_of_extended_resource_claim,
)
from mockube.scheduler.in_tree import devices_for
from mockube.scheduler.pod_class import PodClasses
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.pods import nominated_node
from mockube.scheduler.profiles import DEFAULT_PROFILE
from mockube.scheduler.volumes import Storage
from mockube.scheduler.workload_selector import SpreadControllers, Workloads
from tests.support.controllers.scheduler_objects import best_of, failure_on, store_of
from tests.support.controllers.scheduler_profiles import CONFIGURATIONS, profiles_of

_NOW = "2026-01-01T00:00:00Z"
_METADATA = (
    "name",
    "namespace",
    "uid",
    "labels",
    "annotations",
    "creationTimestamp",
    "resourceVersion",
    "ownerReferences",
)
_CONTAINER = ("name", "image", "resources", "ports", "restartPolicy", "restartPolicyRules")
_STATUS = (
    "phase",
    "startTime",
    "allocatable",
    "images",
    "declaredFeatures",
    "disruptionsAllowed",
    "nominatedNodeName",
    "allocation",
    "reservedFor",
    "resources",
    "allocatedResources",
    "containerStatuses",
    "initContainerStatuses",
)


def recorded(minor, state, pod, attempt, configuration=""):
    """Return a case: what a real scheduler did with a pod. `configuration` is one of `scheduler_profiles`."""
    objects = {name: [_trimmed(one) for one in rows] for name, rows in state.items() if rows}
    profiles = {"configuration": configuration} if configuration else {}
    return {"minor": minor, **profiles, "state": objects, "pod": _trimmed(pod), "real": attempt}


def _trimmed(obj):
    """Return an object with the fields that a scheduler reads."""
    trimmed = {**obj, "metadata": _only(obj["metadata"], _METADATA)}
    if "containers" in obj.get("spec", ()):
        lists = {
            name: [_only(container, _CONTAINER) for container in obj["spec"][name]]
            for name in ("containers", "initContainers")
            if name in obj["spec"]
        }
        trimmed["spec"] = {**obj["spec"], **lists}
    if "status" in obj:
        trimmed["status"] = _only(obj["status"], _STATUS)
        resize = [one for one in obj["status"].get("conditions") or () if one["type"] == "PodResizePending"]
        trimmed["status"] |= {"conditions": resize} if resize else {}
    return trimmed


def _only(tree, names):
    return {name: tree[name] for name in names if name in tree}


def with_changes(cases):
    """Yield cases whose state is what differs from the state of the case before."""
    before = {}
    for case in cases:
        now = {f"{resource} {_key(one)}": one for resource, rows in case["state"].items() for one in rows}
        changes = {name: one for name, one in now.items() if before.get(name) != one}
        changes |= dict.fromkeys(before.keys() - now.keys())
        before = now
        yield {**case, "state": changes}


def without_changes(cases):
    """Yield the cases of `with_changes` with their whole state."""
    now = {}
    for case in cases:
        now = {name: one for name, one in {**now, **case["state"]}.items() if one is not None}
        state = {}
        for name, one in now.items():
            state.setdefault(name.split()[0], []).append(one)
        yield {**case, "state": state}


def _key(obj):
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def differences(case):
    """Yield what is compared, our result and the real one."""
    gates = FeatureGates(case["minor"])
    real, ours = case["real"], decide(case["pod"], case["state"], gates, _profile_of(case))
    if "message" in real:
        if real["message"].startswith('running PreBind plugin "DynamicResources"'):
            yield "failed binding", ours["unbindable"], real["message"]
            return
        yield "message", ours.get("message", f"one of {ours['best']}"), real["message"]
        if "victims" in real:
            yield "victims", ours.get("victims"), real["victims"]
        return
    if not ours["best"]:
        yield "message", ours["message"], f"bound to {real['bound']}"
        return
    for plugin in sorted({*real["scores"], *ours["scores"]}) if real["scores"] else ():
        values = ours["scores"].get(plugin, {}), real["scores"].get(plugin, {})
        # A plugin that scores all nodes alike may be skipped.
        yield (f"score {plugin}", *(one if len({*one.values()}) > 1 else {} for one in values))
    is_best = real["bound"] in ours["best"]
    yield "node", real["bound"] if is_best else ours["best"], real["bound"]
    if is_best and "devices" in real:
        yield "devices", devices_on(case, real["bound"]), real["devices"]


def _profile_of(case):
    if "configuration" not in case:
        return DEFAULT_PROFILE
    profiles = profiles_of(CONFIGURATIONS[case["configuration"]], minor=case["minor"])
    return profiles[case["pod"]["spec"]["schedulerName"]]


def decide(pod, state, gates, profile=DEFAULT_PROFILE):
    """Return what our scheduler decides on a pod: the best nodes and their scores, or the message and the victims."""
    snapshot, cluster = snapshot_of(state, gates)
    info = PodInfo.of(PodView.of(pod), gates)
    found = find_feasible(info, snapshot, profile)
    _check_class(info, snapshot, cluster, found, profile)
    if not found.feasible:
        failure = failure_on(info, snapshot, found, state.get("poddisruptionbudgets", ()), profile)
        victims = failure.candidate.victims if failure.candidate else ()
        names = sorted(victim.view.key.name for victim in victims)
        return {"best": [], "message": failure.message, "victims": names}
    best = [node.name for node in best_nodes(info, snapshot, found.feasible, profile)]
    if len(found.feasible) == 1:
        return {"best": best, "scores": {}, "unbindable": _unbindable(info, snapshot, best)}
    scores = {
        plugin: {node.name: score for node, score in zip(found.feasible, values, strict=True)}
        for plugin, values in scores_by_plugin(info, snapshot, found.feasible, profile).items()
    }
    return {"best": best, "scores": scores, "unbindable": _unbindable(info, snapshot, best)}


def _check_class(info, snapshot, cluster, found, profile):
    """Raise an AssertionError if the class of a pod judges nodes otherwise; pods that leave room for others need none."""
    pod_class = PodClasses(cluster).find(info, snapshot, profile)
    if pod_class is not None and not any(snapshot.nominees(node.name) for node in snapshot.nodes):
        best = best_nodes(info, snapshot, found.feasible, profile) if found.feasible else []
        assert sorted(map(id, best_of(pod_class, snapshot))) == sorted(map(id, best))
        assert pod_class.feasible_nodes(snapshot) == found


def _unbindable(info, snapshot, best):
    """Return the message of a pod that cannot be bound to one of the best nodes."""
    devices = devices_for(info, snapshot)
    nodes = [node for node in snapshot.nodes if node.name in best] if devices is not None else []
    if all(allocate(info, node, devices, _NOW).is_bindable for node in nodes):
        return ""
    problem = f"nil or empty request mappings, no update of pod {info.view.key} ExtendedResourceClaimStatus"
    return f'running PreBind plugin "DynamicResources": {problem}'


def devices_on(case, node_name):
    """Return the allocations of a pod's claims on a node, with the claim for its extended resources."""
    gates = FeatureGates(case["minor"])
    (snapshot, _), info = snapshot_of(case["state"], gates), PodInfo.of(PodView.of(case["pod"]), gates)
    (node,) = (node for node in snapshot.nodes if node.name == node_name)
    devices = devices_for(info, snapshot)
    if devices is None:
        return None
    reservation = allocate(info, node, devices, _NOW)
    allocations = {
        meta.name(claim): reservation.allocations.get(meta.uid(claim)) or claim["status"]["allocation"]
        for claim in reservation.of_user
    }
    extended = reservation.extended
    if extended is None and not allocations:
        return None
    if extended is not None:
        allocations[""] = reservation.allocations[meta.uid(extended)]
    return {
        "allocations": {name: without_time(allocated) for name, allocated in allocations.items()},
        "claim": None if extended is None else extended_claim(extended),
        "mappings": [*reservation.mappings],
    }


def without_time(allocated):
    return {name: value for name, value in allocated.items() if name != "allocationTimestamp"}


def extended_claim(claim):
    """Return what is compared of a claim for extended resources."""
    metadata = _only(claim["metadata"], ("generateName", "annotations", "ownerReferences"))
    return {"metadata": metadata, "spec": claim["spec"]}


def snapshot_of(state, gates):
    """Return the snapshot of a recorded state, and the cache from which it is taken."""
    cluster = SchedulerCache(gates)
    for node in state.get("nodes", ()):
        cluster.set_node(node)
    # Of pods without a start time, those that were bound first are more important.
    for pod in sorted(
        state.get("pods", ()), key=lambda one: (one["metadata"]["creationTimestamp"], number_of(one))
    ):
        if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            cluster.update_pod(PodView.of(pod), pod["spec"]["nodeName"])
    nominees = [
        PodInfo.of(PodView.of(pod), gates)
        for pod in state.get("pods", ())
        if "nodeName" not in pod["spec"] and nominated_node(pod)
    ]
    namespaces = {meta.name(one): meta.labels(one) for one in state.get("namespaces", ())}
    snapshot = ClusterSnapshot(
        nodes=cluster.nodes(),
        labels_of_namespace=lambda name: namespaces.get(name, {}),
        storage=Storage(
            claims=store_of(*state.get("persistentvolumeclaims", ())),
            volumes=store_of(*state.get("persistentvolumes", ())),
            classes=store_of(*state.get("storageclasses", ())),
            csi_nodes=store_of(*state.get("csinodes", ())),
            drivers=store_of(*state.get("csidrivers", ())),
            capacities=store_of(*state.get("csistoragecapacities", ())),
            attachments=store_of(*state.get("volumeattachments", ())),
        ),
        nominees=lambda node: [one for one in nominees if nominated_node(one.view.object) == node],
        matching_counts=cluster.matching_counts,
        users_of_claim=cluster.users_of_claim,
        image_sizes=cluster.image_sizes,
        topology_keys=cluster.topology_keys,
        workloads=Workloads(
            services=store_of(*state.get("services", ())),
            controllers={
                ("apps/v1", "ReplicaSet"): SpreadControllers(store_of(*state.get("replicasets", ())))
            },
        ),
        gates=gates,
        devices=_devices_of(state, gates),
    )
    return snapshot, cluster


def _devices_of(state, gates):
    if "deviceclasses" not in state:
        return None
    claims, slices = state.get("resourceclaims", ()), state.get("resourceslices", ())
    extended = ExtendedResourceClasses()
    for one in sorted(state["deviceclasses"], key=lambda one: int(one["metadata"]["resourceVersion"])):
        extended.handle(Change(None, one))
    by_owner = {owner: claim for claim in claims for owner in owner_of_extended_resource_claim(claim)}
    return DeviceSnapshot(
        claims=store_of(*claims),
        classes=store_of(*state["deviceclasses"]),
        is_of_single_nodes=all("nodeName" in one["spec"] for one in slices),
        slices=lambda node: [one for one in slices if one["spec"].get("nodeName", node) == node],
        slices_of_pool=lambda driver, pool: [
            one for one in slices if (one["spec"]["driver"], one["spec"]["pool"]["name"]) == (driver, pool)
        ],
        in_use={
            device
            for claim in claims
            if allocation(claim) is not None
            for device in device_ids(allocation(claim))
        },
        in_flight={},
        gates=gates,
        extended_classes=extended.by_resource,
        extended_resource_claim=by_owner.get,
    )


def number_of(pod):
    prefix, _, number = pod["metadata"]["name"].rpartition("-")
    return prefix != "old", int(number)
