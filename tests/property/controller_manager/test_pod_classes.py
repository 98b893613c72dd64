"""The classes of pods judge nodes as the reference does, after any changes of nodes and pods."""

from hypothesis import given
from hypothesis import strategies as st

from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.scheduler.choice import best_nodes, find_feasible
from mockube.controller_manager.scheduler.cluster import SchedulerCache
from mockube.controller_manager.scheduler.pod_class import PodClasses
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
    term,
)

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
SET, REMOVE, SCHEDULE, TERMINATE, DELETE = "set", "remove", "schedule", "terminate", "delete"
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just(SET), st.sampled_from(NODES), SHAPES),
        st.tuples(st.just(REMOVE), st.sampled_from(NODES)),
        st.tuples(st.just(SCHEDULE), st.integers(0, len(SPECS) - 1), st.integers(0, 99)),
        st.tuples(st.just(SCHEDULE), st.integers(0, len(SPECS) - 1), st.integers(0, 99)),
        st.tuples(st.just(TERMINATE), st.integers(0, 99)),
        st.tuples(st.just(DELETE), st.integers(0, 99)),
    ),
    min_size=5,
    max_size=60,
)


class Cluster:
    """A cluster whose pods are spread by their label `app`, as those of a Service are."""

    def __init__(self):
        self.cache = SchedulerCache()
        self.classes = PodClasses(self.cache)
        self.trees = {}

    def schedule(self, spec, draw):
        name = f"pod-{len(self.trees)}"
        tree = pod(name, **SPECS[spec])
        tried, state = info(tree), snapshot_of(self.cache)
        expected = find_feasible(tried, state)
        best = best_nodes(tried, state, expected.feasible) if expected.feasible else []
        pod_class = self.classes.find(tried, state)
        assert (pod_class is None) == self.cache.has_ambiguous_hostnames
        if pod_class is not None:
            assert sorted(best_of(pod_class, state), key=id) == sorted(best, key=id)
            assert pod_class.feasible_nodes(state) == expected
        if best:
            self.trees[name] = tree
            self.cache.assign_pod(tried, best[draw % len(best)].name)

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


@given(OPERATIONS)
def test_classes_judge_nodes_as_the_reference_does(operations):
    cluster = Cluster()
    for name in NODES[:4]:
        cluster.cache.set_node(node(name, zone="ab"[len(name) % 2]))
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
