"""The parts of a scheduler over informers that a test fills, without a server, and what these parts send and report."""

from mockube.apimachinery.randomness import SeededRandom
from mockube.client import kinds
from mockube.client.cache.informer import Informers, InformerSettings
from mockube.client.component import ComponentContext
from mockube.client.metrics.process import Metrics
from mockube.client.podview import PodView
from mockube.component_base.clock import SteppedClock
from mockube.scheduler.cluster_state import ClusterState
from mockube.scheduler.event_handlers import EventHandlers
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.profiles import DEFAULT_SETTINGS
from mockube.scheduler.queue import SchedulingQueue


class RecordingClient:
    """A client whose requests are recorded, and succeed unless `error` is set."""

    def __init__(self):
        self.requests = []
        self.error = None

    def __getattr__(self, verb):
        async def send(resource, *arguments, subresource="", **_):
            self.requests.append((verb, "/".join(filter(None, (resource.plural, subresource))), *arguments))
            if self.error is not None:
                raise self.error

        return send


class RecordedEvents:
    """The Events of all components."""

    def __init__(self):
        self.events = []

    def series_of(self, *_, **__):
        return self

    def record(self, about, kind, reason, text, **_):
        self.events.append((about["metadata"]["name"], kind, reason, text))

    @property
    def reasons(self):
        return [(name, reason) for name, _, reason, _ in self.events]


class CountedForgets:
    """An algorithm that counts how often its classes of pods are forgotten."""

    def __init__(self):
        self.forgets = 0

    def forget_classes(self):
        self.forgets += 1


class SchedulerContext:
    """The context of a scheduler over informers that a test fills."""

    def __init__(self):
        self.clock, self.client, self.recorded = SteppedClock(), RecordingClient(), RecordedEvents()
        random = SeededRandom()
        self.informers = Informers(self.client, InformerSettings(clock=self.clock, random=random))
        self.context = ComponentContext(
            client=self.client,
            informers=self.informers,
            clock=self.clock,
            random=random,
            recorder=self.recorded,
            metrics=Metrics(self.clock),
        )

    def put(self, *trees, resource=kinds.PODS):
        for tree in trees:
            self.informers.of(resource).put(tree)

    def put_nodes(self, *nodes):
        for node in nodes:
            node["metadata"].setdefault("resourceVersion", "1")
        self.put(*nodes, resource=kinds.NODES)

    def remove(self, tree):
        self.informers.of(kinds.PODS).remove(tree)


class SchedulerParts(SchedulerContext):
    """The state, the queue and the event handlers of a scheduler; tests make the other parts that they need."""

    def __init__(self):
        super().__init__()
        self.state = ClusterState(self.informers, DEFAULT_SETTINGS.profiles)
        self.queue = SchedulingQueue(self.clock, is_worth=self.state.pending.is_worth_requeuing)
        self.algorithm = CountedForgets()
        self.handlers = EventHandlers(self.informers, self.state, self.queue, self.algorithm)

    def info(self, tree):
        return PodInfo.of(PodView.of(tree), self.state.gates)

    def assume(self, tree, node="a", volumes=()):
        """Count a pod as running on a node, as a decision does."""
        pod = self.info(tree)
        self.state.assume(pod, self.state.cache.node(node), volumes)
        return pod

    @property
    def active(self):
        return self.queue.pending(self.handlers.gated)["active"]

    @property
    def pending(self):
        """The numbers of waiting pods by queue, without those that are 0."""
        return {queue: count for queue, count in self.queue.pending(self.handlers.gated).items() if count}
