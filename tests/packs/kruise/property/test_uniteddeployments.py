"""UnitedDeployments: subset sizes add up within their bounds, and any sequence of events converges."""

from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mockube.apimachinery import meta
from mockube.client.kinds import PODS
from mockube.packs.kruise.controllers.uniteddeployment.allocator import (
    AllocationError,
    SubsetInfo,
    allocate,
    bounds,
)
from mockube.packs.kruise.controllers.uniteddeployment.subset import LABEL_SUBSET_NAME
from tests.packs.kruise.support.uniteddeployments import (
    ADAPTER,
    KINDS,
    UnitedDeploymentHarness,
    adaptive,
    subset,
)

counts = st.integers(0, 12)
values = st.one_of(st.none(), counts, st.integers(0, 100).map("{}%".format))


@st.composite
def places(draw, **fields):
    made = []
    for number in range(draw(st.integers(1, 5))):
        current = draw(counts)
        made.append(
            SubsetInfo(
                name=f"s{number}",
                exists=True,
                current=current,
                ready=draw(st.integers(0, current)),
                **{name: draw(strategy) for name, strategy in fields.items()},
            )
        )
    return made


def allocate_or_reject(total, listed, **way):
    try:
        return allocate(total, listed, **{"adapts": False, "reserves": False, **way})
    except AllocationError:
        reject()


@given(total=counts, listed=places(replicas=values))
def test_specified_replicas_are_kept_and_rest_is_even(total, listed):
    result = allocate_or_reject(total, listed)
    assert sum(result.values()) == total
    open_ = [result[place.name] for place in listed if place.replicas is None]
    assert all(share >= 0 for share in result.values())
    assert max(open_, default=0) - min(open_, default=0) <= 1
    assert all(result[place.name] == place.replicas for place in listed if isinstance(place.replicas, int))


@given(total=counts, listed=places(min_replicas=values, max_replicas=values))
def test_allocation_respects_min_and_max_replicas(total, listed):
    assume(any(place.min_replicas is not None or place.max_replicas is not None for place in listed))
    result = allocate_or_reject(total, listed)
    limits = {place.name: bounds(total, place) for place in listed}
    assert sum(result.values()) == min(total, sum(maximum for _, maximum in limits.values()))
    assert all(0 <= result[name] <= maximum for name, (_, maximum) in limits.items())
    if sum(minimum for minimum, _ in limits.values()) <= total:
        assert all(result[name] >= minimum for name, (minimum, _) in limits.items())


bounded = {
    "min_replicas": st.one_of(st.none(), st.integers(0, 3)),
    "max_replicas": st.one_of(st.none(), counts),
}


@given(total=counts, listed=places(**bounded, unschedulable=st.booleans()))
def test_unschedulable_subset_does_not_grow_beyond_ready_pods(total, listed):
    result = allocate_or_reject(total, listed, adapts=True)
    assert sum(result.values()) <= total
    for place in listed:
        minimum, maximum = bounds(total, place)
        assert 0 <= result[place.name] <= max(maximum, minimum, place.ready)
        if place.unschedulable:
            assert result[place.name] <= max(minimum, place.ready)
    if any(place.max_replicas is None and not place.unschedulable for place in listed):
        assert sum(result.values()) == total


@given(total=counts, listed=places(**bounded))
def test_allocation_without_reserved_pods_equals_bounded_allocation(total, listed):
    assume(any(place.min_replicas is not None or place.max_replicas is not None for place in listed))
    assert allocate_or_reject(total, listed, adapts=True, reserves=True) == allocate_or_reject(total, listed)


@given(
    total=counts,
    listed=places(**bounded, unschedulable=st.booleans(), was_unschedulable=st.booleans(), reserved=counts),
)
def test_reserved_pods_are_not_counted_as_running(total, listed):
    """The subset sizes add up to at least the replicas if a schedulable subset is unbounded."""
    result = allocate_or_reject(total, listed, adapts=True, reserves=True)
    assert all(0 <= share <= 2 * total for share in result.values())
    free = [place for place in listed if not (place.unschedulable or place.was_unschedulable)]
    if any(place.max_replicas is None for place in free):
        assert sum(result.values()) >= total


# --- state machines

NAMES = "abcd"
images = st.sampled_from(["a:1", "a:2", "a:3"])
choices = st.integers(0, 1000)
topologies = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)


class UnitedDeploymentStateMachine(RuleBasedStateMachine):
    """The controller and the workloads' controllers run in random order; users change the spec in between."""

    strategy = None
    kinds = KINDS

    @initialize(kind=choices, count=counts, names=topologies)
    def create_united_deployment(self, kind, count, names):
        kinds = self.kinds
        self.foo = UnitedDeploymentHarness(
            kinds[kind % len(kinds)], names, replicas=count, strategy=self.strategy
        )
        self.foo.settle()

    # --- the controller, and the workloads' controllers

    @rule()
    def reconcile_once(self):
        self.foo.reconcile_once()
        assert self.foo.error is None

    @rule()
    def reconcile_workloads(self):
        self.foo.manage()

    @rule()
    def run_all_pods(self):
        self.foo.run_all()

    @rule(seconds=st.integers(1, 20))
    def advance_clock(self, seconds):
        self.foo.clock.advance(seconds)

    @rule(chosen=choices)
    def delete_pod(self, chosen):
        if self.foo.pods:
            self.foo.remove(PODS, meta.name(self.foo.pods[chosen % len(self.foo.pods)]))

    # --- users

    @rule(count=counts)
    def scale(self, count):
        self.foo.scale(count)

    @rule(image=images)
    def update_image(self, image):
        self.foo.release(image)

    @rule(partitions=st.dictionaries(st.sampled_from(NAMES), st.integers(0, 20)))
    def change_partitions(self, partitions):
        self.foo.keep(**partitions)

    @rule(names=topologies)
    def change_topology(self, names):
        self.foo.set("topology.subsets", [subset(name) for name in names])

    @rule(limit=st.integers(0, 2))
    def reduce_revision_history_limit(self, limit):
        self.foo.set("revisionHistoryLimit", limit)

    @rule(chosen=choices, size=st.integers(0, 20))
    def edit_workload_directly(self, chosen, size):
        workloads = self.foo.workloads()
        if workloads:
            name = meta.name(workloads[chosen % len(workloads)])
            self.foo.respecify(ADAPTER[self.foo.kind].resource, name, ("replicas",), size)

    # --- invariants

    @invariant()
    def each_subset_has_one_workload(self):
        names = [meta.labels(it)[LABEL_SUBSET_NAME] for it in self.foo.workloads()]
        assert len(names) == len({*names})

    @invariant()
    def partitions_do_not_exceed_replicas(self):
        sizes = self.foo.status.get("subsetReplicas") or {}
        kept = self.foo.status["updateStatus"].get("currentPartitions") or {}
        assert all(kept[name] <= sizes[name] for name in kept)

    @invariant()
    def subset_replicas_add_up(self):
        if self.foo.status["observedGeneration"] == meta.generation(self.foo.foo):
            actual = sum(self.foo.status["subsetReplicas"].values())
            assert self.is_allowed_total(actual, self.foo.foo["spec"]["replicas"])

    def is_allowed_total(self, actual, desired):
        return actual == desired

    def teardown(self):
        """Without further events, the state converges to the desired one, and then nothing is written."""
        if not hasattr(self, "foo"):
            return
        foo = self.foo
        foo.full = set()
        foo.keep()
        foo.settle()
        foo.pass_(40)
        desired = foo.foo["spec"]["replicas"]
        assert foo.sizes.keys() == {it["name"] for it in foo.foo["spec"]["topology"]["subsets"]}
        assert sum(foo.sizes.values()) == desired == len(foo.pods) == foo.status["replicas"]
        image = foo.foo["spec"]["template"][ADAPTER[foo.kind].template]["spec"]["template"]["spec"]
        assert {one for images in foo.images.values() for one in images} <= {image["containers"][0]["image"]}
        assert foo.status["currentRevision"] == foo.status["updateStatus"]["updatedRevision"]
        assert len(foo.revisions) <= max(foo.foo["spec"]["revisionHistoryLimit"], 1)
        assert "reservedPods" not in foo.status
        assert foo.next_plan() == ()


class SchedulableSubsets(UnitedDeploymentStateMachine):
    """Every pod is schedulable."""


class AdaptiveSubsets(UnitedDeploymentStateMachine):
    """Nodes are missing now and then, and the subset sizes change accordingly."""

    strategy = adaptive(5, 10)

    @rule(names=st.sets(st.sampled_from(NAMES)))
    def make_subsets_unschedulable(self, names):
        self.foo.full = names

    def is_allowed_total(self, actual, desired):
        """Without any schedulable node, the total may be less than desired."""
        return actual <= desired


class AdaptiveSubsetsWithReservedPods(AdaptiveSubsets):
    """The same, with replacements for unschedulable pods."""

    strategy = adaptive(5, 10, reserves=True)
    kinds = ("Deployment", "CloneSet")

    def is_allowed_total(self, actual, desired):
        """There may be more pods, and fewer where the only subset waits for nodes."""
        return actual <= 2 * desired * len(NAMES)


for machine in (SchedulableSubsets, AdaptiveSubsets, AdaptiveSubsetsWithReservedPods):
    machine.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)

TestSchedulableSubsets = SchedulableSubsets.TestCase
TestAdaptiveSubsets = AdaptiveSubsets.TestCase
TestAdaptiveSubsetsWithReservedPods = AdaptiveSubsetsWithReservedPods.TestCase
