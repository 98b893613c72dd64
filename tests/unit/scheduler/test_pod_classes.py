"""The classes of pods judge nodes as the reference does, after any changes of nodes and pods, in any profile."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.client import kinds
from mockube.client.cache.store import Change
from mockube.client.component_helpers.volumes import NO_PROVISIONER, SELECTED_NODE
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.scheduler.choice import best_nodes, find_feasible
from mockube.scheduler.cluster import SchedulerCache
from mockube.scheduler.devices.claims import DeviceSnapshot, allocate, device_ids
from mockube.scheduler.devices.fingerprints import DeviceFingerprints
from mockube.scheduler.plugin import SchedulerPlugin
from mockube.scheduler.pod_class import PodClasses
from mockube.scheduler.profiles import DEFAULT_PROFILE
from mockube.scheduler.sampling import NodeSample
from mockube.scheduler.volumes import Storage, claims_of
from mockube.scheduler.watched import nodes_of_change
from mockube.scheduler.workload_selector import Workloads
from tests.support.controllers.scheduler_objects import (
    HOST,
    ZONE,
    apart,
    best_of,
    info,
    near,
    node,
    pod,
    preferred,
    snapshot_of,
    spread_constraint,
    store_of,
    term,
)
from tests.support.controllers.scheduler_profiles import (
    ADDED_AFFINITY,
    OTHER_WEIGHTS,
    PACKING,
    RATIO,
    SPREADING,
    profile_of,
)
from tests.support.controllers.scheduler_volumes import claim, volume

NODES = [f"node-{number}" for number in range(8)]
WEB, DATABASE = {"app": "web"}, {"app": "db"}
TAINTS = (
    [],
    [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
    [{"key": "old", "value": "", "effect": "PreferNoSchedule"}],
)
IMAGES = [{"names": ["i:latest"], "sizeBytes": 400 << 20}]
SHAPES = st.fixed_dictionaries(
    {
        "zone": st.sampled_from([None, "a", "b", "c", ""]),
        "cpu": st.sampled_from(["2", "4"]),
        "pods": st.sampled_from(["2", "9"]),
        "labels": st.sampled_from([{}, {}, {"disk": "ssd"}, {"rack": "1"}, {HOST: "shared"}]),
        "taints": st.sampled_from(TAINTS),
        "unschedulable": st.booleans(),
        "status": st.sampled_from([{}, {"images": IMAGES}]),
    }
)


def disk(weight):
    term_of_node = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": term_of_node}]
    }


SPECS = (
    {"labels": WEB},
    {"labels": WEB, "requests": {"cpu": "500m", "memory": "1Gi"}},
    {"labels": DATABASE, "requests": {"cpu": "1500m"}},
    {"labels": WEB, "nodeSelector": {"disk": "ssd"}},
    {"labels": WEB, "tolerations": [{"operator": "Exists"}]},
    {"labels": WEB, "affinity": {"nodeAffinity": disk(5)}},
    {"labels": WEB, "affinity": apart(term(HOST, WEB))},
    {"labels": WEB, "affinity": apart(term(ZONE, WEB))},
    {"labels": DATABASE, "affinity": near(term(ZONE, WEB))},
    {"labels": WEB, "affinity": near(term(HOST, WEB), term(ZONE, WEB))},
    {"labels": WEB, "affinity": near(preferred(3, ZONE, DATABASE), preferred(2, HOST, WEB))},
    {"labels": DATABASE, "affinity": apart(preferred(4, "rack", WEB))},
    {"labels": WEB, "topologySpreadConstraints": [spread_constraint()]},
    {"labels": WEB, "topologySpreadConstraints": [spread_constraint(minDomains=3)]},
    {"labels": WEB, "topologySpreadConstraints": [spread_constraint(HOST, minDomains=3)]},
    {"labels": WEB, "topologySpreadConstraints": [spread_constraint(HOST), spread_constraint(maxSkew=2)]},
    {"labels": WEB, "topologySpreadConstraints": [spread_constraint(nodeTaintsPolicy="Honor")]},
    {"labels": WEB, "topologySpreadConstraints": [spread_constraint(action="ScheduleAnyway")]},
    {
        "labels": WEB,
        "topologySpreadConstraints": [
            spread_constraint(HOST, action="ScheduleAnyway"),
            spread_constraint("rack", action="ScheduleAnyway"),
        ],
    },
)


def zonal(zone):
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


WAITING = {"volumeBindingMode": "WaitForFirstConsumer"}
IN_ZONE_A = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
CLASSES = [
    {"metadata": {"name": "disk"}, "provisioner": "disk", **WAITING},
    {"metadata": {"name": "zone-a"}, "provisioner": "disk", "allowedTopologies": IN_ZONE_A, **WAITING},
    {"metadata": {"name": "pool"}, "provisioner": "pool", **WAITING},
    {"metadata": {"name": "static"}, "provisioner": NO_PROVISIONER, **WAITING},
    {"metadata": {"name": "local"}, "provisioner": NO_PROVISIONER, **WAITING},
    {"metadata": {"name": "now"}, "provisioner": "disk"},
]
CAPACITIES = [
    {
        "metadata": {"name": zone, "namespace": "default"},
        "storageClassName": "pool",
        "nodeTopology": {"matchLabels": {ZONE: zone}},
        "capacity": capacity,
    }
    for zone, capacity in (("a", "5Gi"), ("b", "1Mi"))
]
STATIC = [
    *(volume(f"static-{zone}", storage_class="static", status="Available", **zonal(zone)) for zone in "ab"),
    *(volume(f"local-{name}", storage_class="local", status="Available", on=name) for name in NODES[:3]),
]


def zone_labels(zone):
    return {"labels": {ZONE: zone}, **zonal(zone)}


CLAIMS = {
    "dynamic": {"storage_class": "disk"},
    "in zone a": {"storage_class": "zone-a"},
    "with capacities": {"storage_class": "pool"},
    "static": {"storage_class": "static"},
    "local": {"storage_class": "local"},
    "immediate": {"storage_class": "now"},
    "selected": {"storage_class": "disk", "annotations": {SELECTED_NODE: "node-1"}},
}
VOLUMES = {
    "bound": {},
    "bound in zone b": zone_labels("b"),
    "bound to a host": {"on": "node-2"},
    "bound to labels of zones": {"labels": {ZONE: "a__c"}},
}
SHARED = {
    "of one pod at a time": {"storage_class": "disk", "accessModes": ["ReadWriteOncePod"]},
    "shared": {"storage_class": "disk"},
    "shared static": {"storage_class": "static"},
}
KINDS_OF_CLAIMS = [*CLAIMS, *VOLUMES, *SHARED]


def gpu_class(name, expression):
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


GPU_CLASSES = [
    gpu_class("a100", 'device.attributes["gpu"].model == "a100"'),
    gpu_class("any", 'device.driver == "gpu"'),
    gpu_class("fast", 'device.attributes["gpu"].speed > 5'),
]
"""The last one fails for devices without a speed."""


def requests(*device_classes, **more):
    exactly = [
        {"exactly": {"deviceClassName": name, "count": 1}, "name": f"r{i}"}
        for i, name in enumerate(device_classes)
    ]
    return {"devices": {"requests": exactly, **more}}


SAME_MODEL = {"constraints": [{"matchAttribute": "gpu/model", "requests": []}]}
DEVICE_CLAIMS = {
    "one": requests("a100"),
    "any": requests("any"),
    "two": requests("any", "any"),
    "two alike": requests("any", "any", **SAME_MODEL),
    "fast": requests("fast"),
    "first available": {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "firstAvailable": [
                        {"name": "two", "deviceClassName": "any", "count": 2},
                        {"name": "one", "deviceClassName": "any", "count": 1},
                    ],
                }
            ]
        }
    },
}
MODELS = st.lists(st.sampled_from(["a100", "t4"]), max_size=3)


def devices_of(name, models):
    """Return the slices of a node; each device has a uuid of its own."""
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"model": {"string": model}, "uuid": {"string": f"{name}-{number}"}}
            | ({"speed": {"int": 9}} if model == "a100" else {}),
        }
        for number, model in enumerate(models)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu", "pool": pool, "nodeName": name, "devices": devices}
    return [{"metadata": {"name": name}, "spec": spec}] if models else []


KINDS = {
    "claims": kinds.PERSISTENT_VOLUME_CLAIMS,
    "volumes": kinds.PERSISTENT_VOLUMES,
    "csi_nodes": kinds.CSI_NODES,
}


class Few(SchedulerPlugin):
    """A plugin that judges pods and nodes by what kube-scheduler's plugins read."""

    name = "Few"
    judges_alike = True

    def filter(self, pod, node):
        return "node(s) have enough pods" if len(node.pods) > 3 and pod.requested["cpu"] else None

    def score(self, _, node):
        return -len(node.pods)

    def normalize(self, scores):
        return [score - min(scores) for score in scores]


LATE = {"filter": {"enabled": [{"name": "NodeName"}, {"name": "InterPodAffinity"}, {"name": "Few"}]}}
PROFILES = {
    "default": DEFAULT_PROFILE,
    "packing": profile_of(PACKING),
    "weights": profile_of(OTHER_WEIGHTS),
    "spreading": profile_of(SPREADING),
    "ratio": profile_of(RATIO),
    "affinity": profile_of(ADDED_AFFINITY),
    "own": profile_of({}, [Few()]),
    "own filter between others": profile_of({"plugins": LATE}, [Few()]),
}
PROFILES = {name: replace(profile, name=name) for name, profile in PROFILES.items()}
SERVICE = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": WEB}}
WORKLOADS = Workloads(services=store_of(SERVICE), controllers={})
SET, REMOVE, SCHEDULE, TERMINATE, DELETE = "set", "remove", "schedule", "terminate", "delete"
CLAIM, BIND, LIMIT = "schedule_with_claims", "bind", "limit"
DEVICE, SLICE = "schedule_with_devices", "set_slices"
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just(SET), st.sampled_from(NODES), SHAPES),
        st.tuples(st.just(REMOVE), st.sampled_from(NODES)),
        st.tuples(st.just(SCHEDULE), st.integers(0, len(SPECS) - 1), st.integers(0, 99)),
        st.tuples(st.just(SCHEDULE), st.integers(0, len(SPECS) - 1), st.integers(0, 99)),
        st.tuples(
            st.just(CLAIM),
            st.lists(st.sampled_from(KINDS_OF_CLAIMS), min_size=1, max_size=2),
            st.integers(0, 99),
        ),
        st.tuples(
            st.just(CLAIM),
            st.lists(st.sampled_from(KINDS_OF_CLAIMS), min_size=1, max_size=1),
            st.integers(0, 99),
        ),
        st.tuples(st.just(BIND)),
        st.tuples(st.just(DEVICE), st.sampled_from([*DEVICE_CLAIMS]), st.integers(0, 99)),
        st.tuples(st.just(DEVICE), st.sampled_from([*DEVICE_CLAIMS]), st.integers(0, 99)),
        st.tuples(st.just(SLICE), st.sampled_from(NODES[:5]), MODELS),
        st.tuples(st.just(LIMIT), st.sampled_from(NODES), st.integers(0, 2)),
        st.tuples(st.just(TERMINATE), st.integers(0, 99)),
        st.tuples(st.just(DELETE), st.integers(0, 99)),
    ),
    min_size=15,
    max_size=60,
)


class Cluster:
    """A cluster with one Service. All profiles judge each pod, and the first one places it."""

    def __init__(self, profiles):
        self.profiles = profiles
        self.cache = SchedulerCache()
        self.classes = PodClasses(self.cache)
        self.trees = {}
        self.stores = {
            "claims": store_of(),
            "volumes": store_of(*STATIC),
            "classes": store_of(*CLASSES),
            "csi_nodes": store_of(),
            "drivers": store_of({"metadata": {"name": "pool"}, "spec": {"storageCapacity": True}}),
            "capacities": store_of(*CAPACITIES),
        }
        self.storage = Storage(**self.stores)
        self.slices = {
            name: devices_of(name, models)
            for name, models in zip(NODES, (["a100"] * 2, ["a100"], ["t4"]), strict=False)
        }
        self.device_claims = store_of()
        self.in_use = Counter()
        self.allocations = {}
        self.fingerprints = DeviceFingerprints()
        self.bindings = []

    def put(self, store, obj):
        old = self.stores[store].put(Key.of(obj), obj)
        for name in nodes_of_change(Change(old, obj), KINDS[store], self.storage, self.cache.users_of_claim):
            self.cache.mark_changed(name)

    def schedule(self, spec, draw):
        name = f"pod-{len(self.trees)}"
        self.place(name, pod(name, **SPECS[spec]), draw)

    def schedule_with_claims(self, chosen, draw):
        """Schedule a pod of a StatefulSet: those of the same kinds of claims have one class."""
        name = f"pod-{len(self.trees)}"
        names = [self.create_claim(kind, f"{name}-{number}") for number, kind in enumerate(chosen)]
        volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in names]
        self.place(name, pod(name, labels=DATABASE, volumes=volumes), draw)

    def schedule_with_devices(self, kind, draw):
        name = f"pod-{len(self.trees)}"
        one = {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": DEVICE_CLAIMS[kind]}
        self.device_claims.put(Key.of(one), one)
        self.place(
            name, pod(name, labels=DATABASE, resourceClaims=[{"name": "c", "resourceClaimName": name}]), draw
        )

    def set_slices(self, name, models):
        self.slices[name] = devices_of(name, models)
        self.cache.mark_changed(name)

    def devices(self):
        return DeviceSnapshot(
            claims=self.device_claims,
            classes=store_of(*GPU_CLASSES),
            slices=lambda name: self.slices.get(name, ()),
            in_use=self.in_use,
            in_flight={},
            is_of_single_nodes=True,
            fingerprints=self.fingerprints,
        )

    def allocate(self, tried, chosen, devices):
        ids = [
            one
            for allocated in allocate(tried, chosen, devices, "").allocations.values()
            for one in device_ids(allocated)
        ]
        self.allocations[tried.view.uid] = ids
        self.in_use.update(ids)

    def release(self, name):
        for one in self.allocations.pop(name, ()):
            self.in_use[one] -= 1
            if not self.in_use[one]:
                del self.in_use[one]
            self.cache.mark_changed(one.pool)

    def create_claim(self, kind, name):
        """Create a claim, unless pods share it, and return its name."""
        if kind in CLAIMS:
            self.put("claims", claim(name, **CLAIMS[kind]))
        elif kind in VOLUMES:
            self.put(
                "volumes", volume(f"of-{name}", csi={"driver": "disk", "volumeHandle": name}, **VOLUMES[kind])
            )
            self.put("claims", claim(name, volume=f"of-{name}"))
        else:
            name = kind.replace(" ", "-")
            if self.stores["claims"].get("default", name) is None:
                self.put("claims", claim(name, **SHARED[kind]))
        return name

    def bind(self):
        """Bind the claims of the pod that was placed first."""
        if not self.bindings:
            return
        uid, bindings = self.bindings.pop(0)
        for binding in bindings:
            name = meta.name(binding.claim)
            bound = binding.volume or volume(f"of-{name}", **zonal("a"))
            reference = {"namespace": "default", "name": name, "uid": meta.uid(binding.claim)}
            self.put(
                "volumes",
                {**bound, "spec": {**bound["spec"], "claimRef": reference}, "status": {"phase": "Bound"}},
            )
            self.put("claims", claim(name, volume=meta.name(bound)))
        self.storage.assumed.forget(uid)

    def limit(self, name, count):
        """Let a node attach few volumes only."""
        drivers = [{"name": "disk", "allocatable": {"count": count}}]
        self.put("csi_nodes", {"metadata": {"name": name}, "spec": {"drivers": drivers}})

    def place(self, name, tree, draw):
        tried = info(tree)
        state = replace(snapshot_of(self.cache), workloads=WORKLOADS, storage=self.storage)
        if tried.spec.get("resourceClaims"):
            state = replace(state, devices=self.devices())
        best, *_ = [self.judge(tried, state, profile) for profile in self.profiles]
        for profile in self.profiles:
            self.judge_sample(tried, replace(state, nodes=self.cache.nodes_in_turn()), profile, draw)
        if best:
            self.trees[name] = tree
            chosen = best[draw % len(best)]
            bindings = claims_of(tried, self.storage).assign(chosen.node, self.storage)
            self.storage.assumed.assume(name, chosen.name, bindings)
            self.bindings.append((name, bindings))
            if state.devices is not None:
                self.allocate(tried, chosen, state.devices)
            self.cache.assign_pod(tried, chosen.name)

    def judge(self, tried, state, profile):
        """Return the best nodes of the reference, with which the class agrees."""
        expected = find_feasible(tried, state, profile)
        best = best_nodes(tried, state, expected.feasible, profile) if expected.feasible else []
        pod_class = self.classes.find(tried, state, profile)
        assert (pod_class is None) == self.cache.has_ambiguous_hostnames or self.has_claims(tried)
        if pod_class is not None:
            assert sorted(best_of(pod_class, state), key=id) == sorted(best, key=id)
            assert pod_class.feasible_nodes(state) == expected
        return best

    @staticmethod
    def has_claims(tried):
        return bool(tried.claims or tried.spec.get("resourceClaims"))

    def judge_sample(self, tried, state, profile, draw):
        pod_class = self.classes.find(tried, state, profile)
        if pod_class is None or not state.nodes:
            return
        samples = [NodeSample(draw % len(state.nodes), 1 + draw % 3) for _ in range(2)]
        feasible = find_feasible(tried, state, profile, samples[0]).feasible
        groups = pod_class.feasible_groups(state, samples[1])
        assert samples[0].checked == samples[1].checked
        assert sorted(map(id, feasible)) == sorted(id(one) for nodes in groups.values() for one in nodes)
        if feasible:
            best = best_nodes(tried, state, feasible, profile)
            assert sorted(map(id, pod_class.best_nodes(groups, state))) == sorted(map(id, best))

    def chosen(self, number):
        names = sorted(name for name in self.trees if self.cache.has_pod(name))
        return names[number % len(names)] if names else None

    def terminate(self, number):
        name = self.chosen(number)
        if name is not None:
            tree = self.trees[name]
            deleted = {**tree, "metadata": {**tree["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
            for one in self.cache.nodes():
                if name in one.pods:
                    self.cache.update_pod(PodView.of(deleted), one.name)

    def delete(self, number):
        name = self.chosen(number)
        if name is not None:
            self.cache.remove_pod(name)
            self.release(name)


@given(OPERATIONS, st.sampled_from([*PROFILES]), st.sampled_from([*PROFILES]))
def test_classes_judge_nodes_as_the_reference_does(operations, profile, other):
    cluster = Cluster([PROFILES[name] for name in {profile: 0, other: 0}])
    for name, zone in zip(NODES[:4], "aabc", strict=True):
        cluster.cache.set_node(node(name, zone=zone))
    for operation, *arguments in operations:
        if operation == SET:
            name, shape = arguments
            tree = node(name, **shape)
            if shape["cpu"] == "2":
                del tree["metadata"]["labels"][HOST]
            cluster.cache.set_node(tree)
        elif operation == REMOVE:
            cluster.cache.remove_node(*arguments)
        else:
            getattr(cluster, operation)(*arguments)
