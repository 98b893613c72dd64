"""The scheduler's cache of nodes and their pods, and the snapshot that one decision reads."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.client.podview import PodView
from mockube.client.resources import Key

from .nodeinfo import NodeInfo
from .podinfo import PodInfo
from .sampling import in_turn_by_zone
from .volumes import Storage
from .workload_selector import Workloads

if TYPE_CHECKING:
    from .devices.claims import DeviceSnapshot


_Labels = tuple[tuple[str, str], ...]


class SchedulerCache:
    """The nodes by name, with the pods on them, including assumed ones; kube-scheduler's cache."""

    def __init__(self, gates: FeatureGates | None = None) -> None:
        self._gates = gates or FeatureGates()
        self._nodes: dict[str, NodeInfo] = {}
        self._node_names: dict[str, str] = {}
        """The names of nodes, by the uids of the pods on them."""
        self._assumed: set[str] = set()
        """The uids of pods of which only this scheduler knows that they have a node."""
        self._label_counts: defaultdict[str, dict[_Labels, Counter[str]]] = defaultdict(dict)
        """The number of pods on each node by namespace and labels, without terminating ones."""
        self._known: Sequence[NodeInfo] | None = None
        """What `nodes` returns, until a node comes or goes."""
        self._in_turn: Sequence[NodeInfo] | None = None
        """What `nodes_in_turn` returns, until a node comes, goes or changes its labels."""
        self._generations: dict[str, int] = {}
        """When each node changed last, the latest change last; as the order of nodes in kube-scheduler's cache."""
        self.generation = 0
        """Counts the changes of nodes."""
        self._images: dict[str, dict[str, int]] = {}
        """The sizes of images by node."""
        self._hostnames: dict[str, set[str]] = {}
        """The names of nodes by their hostname label."""
        self._nodes_with_hostname = 0
        self._claim_users: dict[Key, Counter[str]] = {}
        """The number of pods on each node that use a claim."""
        self._topology_keys: Counter[str] = Counter()
        """The number of affinity terms of pods by topology key."""

    def nodes(self) -> Sequence[NodeInfo]:
        if self._known is None:
            self._known = [node for node in self._nodes.values() if node.is_known]
        return self._known

    def changed_since(self, generation: int) -> list[str]:
        """Return the names of the nodes that changed, or went, after a generation."""
        changed = []
        for name, latest in reversed(self._generations.items()):
            if latest <= generation:
                break
            changed.append(name)
        return changed

    def nodes_in_turn(self) -> Sequence[NodeInfo]:
        """Return the nodes in the order in which kube-scheduler checks them: the zones take turns."""
        if self._in_turn is None:
            self._in_turn = in_turn_by_zone(self.nodes())
        return self._in_turn

    @property
    def topology_keys(self) -> frozenset[str]:
        """The topology keys of the affinity terms of pods on nodes."""
        return frozenset(self._topology_keys)

    @property
    def has_ambiguous_hostnames(self) -> bool:
        """Whether nodes share a hostname label, so that it does not name one node."""
        return "" in self._hostnames or len(self._hostnames) < self._nodes_with_hostname

    def nodes_of_hosts(self, hostnames: Iterable[str]) -> Iterator[str]:
        """Yield the names of the nodes with some hostname labels."""
        for hostname in hostnames:
            yield from self._hostnames.get(hostname, ())

    def users_of_claim(self, claim: Key) -> Collection[str]:
        """Return the names of the nodes with pods that use a claim."""
        return self._claim_users.get(claim, {})

    def image_sizes(self, image: str) -> Mapping[str, int]:
        """Return the sizes of an image by the nodes that have it, in the order in which these reported it."""
        return self._images.get(image, {})

    def node(self, name: str) -> NodeInfo | None:
        return self._nodes.get(name)

    def sizes(self) -> dict[str, int]:
        """Return the numbers of nodes, of pods, and of the pods among them that are assumed."""
        return {
            "nodes": len(self._nodes),
            "pods": len(self._node_names),
            "assumed_pods": len(self._assumed),
        }

    def has_pod(self, uid: str) -> bool:
        return uid in self._node_names

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def set_node(self, node: ReadOnlyTree) -> None:
        info = self._node_info(meta.name(node))
        was_known, hostname, images, state = info.is_known, _hostname_of(info), info.images, info.state
        old_labels = info.labels
        info.set_node(node)
        if info.labels != old_labels or not was_known:
            self._in_turn = None
        self._forget_hostname(info.name, hostname)
        self._keep_hostname(info.name, _hostname_of(info))
        self._list_images(info, images)
        if not was_known:
            self._known = None
        if info.state != state or _hostname_of(info) != hostname:
            self.mark_changed(info.name)

    def remove_node(self, name: str) -> None:
        node = self._node_info(name)
        images = node.images
        self._forget_hostname(name, _hostname_of(node))
        node.forget_node()
        self._in_turn = None
        self._list_images(node, images)
        self._known = None
        self.mark_changed(name)
        self._drop_if_empty(node)

    def mark_changed(self, name: str) -> None:
        """Let classes of pods judge a node anew; what changed need not be in the cache, as its devices and attached volumes."""
        if name not in self._nodes:
            return
        self.generation += 1
        self._generations.pop(name, None)  # so that it becomes the last one
        self._generations[name] = self.generation

    def _list_images(self, node: NodeInfo, old: Mapping[str, int]) -> None:
        for image in old.keys() - node.images.keys():
            self._images[image].pop(node.name)
            if not self._images[image]:
                del self._images[image]
        for image, size in node.images.items():
            self._images.setdefault(image, {})[node.name] = size

    def _keep_hostname(self, name: str, hostname: str | None) -> None:
        if hostname is not None:
            self._hostnames.setdefault(hostname, set()).add(name)
            self._nodes_with_hostname += 1

    def _forget_hostname(self, name: str, hostname: str | None) -> None:
        if hostname is not None:
            self._hostnames[hostname].discard(name)
            self._nodes_with_hostname -= 1
            if not self._hostnames[hostname]:
                del self._hostnames[hostname]

    @staticmethod
    def _count(counter: Counter[str], name: str, change: int) -> None:
        counter[name] += change
        if not counter[name]:
            del counter[name]

    def update_pod(self, view: PodView, node: str) -> None:
        """Add or update a pod on a node, in its current state. It is no longer assumed."""
        self._assumed.discard(view.uid)
        node_name = self._node_names.get(view.uid)
        if node_name is None:
            self.assign_pod(PodInfo.of(view, self._gates), node)
            return
        pod_info = self._nodes[node_name].pods[view.uid]
        pod = pod_info.with_view(view)
        if node_name == node and pod.counts_as(pod_info):
            self._nodes[node].replace(pod)
        else:
            self.assign_pod(pod, node)

    def assign_pod(self, pod: PodInfo, node: str) -> None:
        self.remove_pod(pod.view.uid)
        self._node_info(node).add(pod)
        self._node_names[pod.view.uid] = node
        self._count_pod(pod, node, 1)

    def assume_pod(self, pod: PodInfo, node: str) -> None:
        """Count a pod as running on a node before the server knows of it."""
        self.assign_pod(pod, node)
        self._assumed.add(pod.view.uid)

    def remove_pod(self, uid: str) -> None:
        self._assumed.discard(uid)
        name = self._node_names.pop(uid, None)
        if name is not None:
            node = self._nodes[name]
            self._count_pod(node.pods[uid], name, -1)
            node.remove(uid)
            self._drop_if_empty(node)

    def matching_counts(self, namespace: str, selector: Selector) -> Counter[str]:
        """Return the number of matching pods by node, without terminating ones. An empty selector matches none."""
        counts: Counter[str] = Counter()
        if not selector.empty:
            for labels, by_node in self._label_counts.get(namespace, {}).items():
                if selector.matches(dict(labels)):
                    counts.update(by_node)
        return counts

    def _count_pod(self, pod: PodInfo, node: str, change: int) -> None:
        self.mark_changed(node)
        for key in pod.terms.topology_keys:
            self._count(self._topology_keys, key, change)
        self._count_labels(pod, node, change)
        for name in pod.claims:
            claim = Key(pod.view.key.namespace, name)
            users = self._claim_users.setdefault(claim, Counter())
            self._count(users, node, change)
            if not users:
                del self._claim_users[claim]

    def _count_labels(self, pod: PodInfo, node: str, change: int) -> None:
        if pod.view.deleting:
            return
        labels = tuple(sorted(pod.view.labels.items()))
        by_labels = self._label_counts[pod.view.key.namespace]
        by_node = by_labels.setdefault(labels, Counter())
        by_node[node] += change
        if not by_node[node]:
            del by_node[node]
        if not by_node:
            del by_labels[labels]

    def _node_info(self, name: str) -> NodeInfo:
        if name not in self._nodes:
            self._nodes[name] = NodeInfo(name)
        return self._nodes[name]

    def _drop_if_empty(self, node: NodeInfo) -> None:
        if not node.is_known and not node.pods:
            self._nodes.pop(node.name, None)


def _hostname_of(node: NodeInfo) -> str | None:
    return node.labels.get(LABEL_HOSTNAME)


def no_nominees(_: str) -> Sequence[PodInfo]:
    return ()


def no_users(_: Key) -> Collection[str]:
    return ()


def no_images(_: str) -> Mapping[str, int]:
    return {}


def no_counts(_: str, __: Selector) -> Counter[str]:
    return Counter()


class ClusterSnapshot(Struct, frozen=True, kw_only=True):
    """The state of the cluster that one scheduling decision reads."""

    nodes: Sequence[NodeInfo]
    labels_of_namespace: Callable[[str], Mapping[str, str]]
    storage: Storage
    devices: "DeviceSnapshot | None" = None
    """None before the first pod claims devices."""
    nominees: Callable[[str], Sequence[PodInfo]] = no_nominees
    """Returns the pods that are nominated for a node, by its name: they wait for the end of preempted pods."""
    matching_counts: Callable[[str, Selector], Counter[str]] = no_counts
    """Returns the number of pods in a namespace that a selector matches, by the name of their node."""
    users_of_claim: Callable[[Key], Collection[str]] = no_users
    """Returns the names of the nodes with pods that use a claim."""
    image_sizes: Callable[[str], Mapping[str, int]] = no_images
    """Returns the sizes of an image by the nodes that have it."""
    topology_keys: frozenset[str] = frozenset()
    """The topology keys of the affinity terms of pods on nodes."""
    workloads: Workloads | None = None
    gates: FeatureGates = field(default_factory=FeatureGates)
