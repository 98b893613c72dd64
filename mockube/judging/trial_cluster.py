"""A cluster of its own for one trial of a judgement, with the operator installed, and what it sends and writes."""

import base64
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.control.recorder import RecordedCall
from mockube.client import kubeconfig
from mockube.cluster import Cluster
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import RestartBackoff
from mockube.component_base.temporary_folder import temporary_folder
from mockube.objects.errors import KindNotServed
from mockube.operators.account import UNDER_TEST, account_with_all_rights, write_kubeconfig
from mockube.operators.end_state import Identity
from mockube.operators.operator_pod import INSTANCES, OperatorPod, UnsupportedPod, can_have_mounts
from mockube.operators.writes import WRITES, is_write

from . import object_kinds
from .inputs import DEFAULT_ACCOUNT, Account, Release, Sample, Workload, find_workload
from .instances import Instance, ProcessInstance
from .operator_pods import read_pod

_POLL_SECONDS: Final = 0.2
_NO_NODE: Final = "mockube.dev/no-node"
OWN_ACCOUNT: Final = Account(namespace="default", name=UNDER_TEST)
_TOKEN_SECONDS: Final = 20.0
_FIRST_RESTART_SECONDS: Final = 0.5
_MAX_RESTART_SECONDS: Final = 4.0
"""The delay before a restart doubles as that of a kubelet, and is far shorter than its 5 minutes, for which nobody would wait."""
_HEALTHY_SECONDS: Final = 10.0
_RECORDED: Final = 100_000
"""How many changes a cluster records, and requests at least."""
_REQUESTS_EACH: Final = 100
"""How many requests of the operator are recorded for each of many resources."""


class Setup(Struct, frozen=True, kw_only=True):
    """What all trials share: the operator, and how long to wait for it."""

    release: Release
    sample: Sample
    namespace: str
    clock: Clock
    previous: Release | None = None
    account: Account | None = None
    """The service account that the user named."""
    webhook_services: Sequence[str] = ()
    quiet_seconds: float = 2.0
    """For how long nobody may write, until the cluster counts as settled."""
    idle_seconds: float = 10.0
    """For how long a settled operator is watched."""
    start_seconds: float = 30.0
    """How long an operator may take from its start until it reads its custom resources, in which others wait for it."""
    reaction_seconds: float = 10.0
    """How long an operator may take until its first write for a change."""
    timeout: float = 90.0
    """How long it may take to reach a state."""
    resources: int = 1000
    fields: int = 30
    minor: str = minors.NEWEST
    interrupted: threading.Event = field(default_factory=threading.Event)
    """Set when the user ends the test, so that no trial waits any longer."""

    def workload(self, release: Release, minor: str = minors.NEWEST) -> Workload | None:
        return find_workload(release.trees(minor), self.sample.group, self.namespace)

    def undefined_namespaces(self, trees: Sequence[ReadOnlyTree], account: Account) -> Sequence[str]:
        """Return the namespaces that the objects need, and that are none of them."""
        known = {meta.name(tree) for tree in trees if object_kinds.is_namespace(tree)}
        named = {meta.namespace(tree) for tree in (*trees, *self.sample.others, self.sample.resource)}
        return sorted((named | {account.namespace, self.namespace}) - known - {""})

    def account_of(self, release: Release) -> Account | None:
        """Return the service account of the operator; None if the manifests have none."""
        if self.account is not None:
            return self.account
        workload = self.workload(release)
        return None if workload is None or workload.account.name == DEFAULT_ACCOUNT else workload.account


class Interrupted(Exception):
    """The user has ended the test."""


class Exit(Struct, frozen=True, kw_only=True):
    """The operator ended by itself."""

    code: int
    log: str


class _Restart(Struct, kw_only=True):
    """When an instance that has ended by itself is started again."""

    backoff: RestartBackoff
    due: float | None = None
    """None while it runs."""


class TrialCluster:
    """One cluster with the objects of one release, and any number of instances of the operator."""

    def __init__(self, setup: Setup, cluster: Cluster, release: Release, minor: str, folder: Path) -> None:
        self.setup, self.cluster, self.minor = setup, cluster, minor
        self._folder = folder
        self._users: dict[str, None] = {}
        self.use(release)
        self._restarts: dict[Instance, _Restart] = {}
        self.exits: list[Exit] = []
        """How often instances ended by themselves; each is started again, as a kubelet would."""
        self.refused: list[tuple[ReadOnlyTree, str]] = []
        """The objects of the manifests that the server refused."""
        self.poll_seconds = _POLL_SECONDS
        self.quiet_seconds = setup.quiet_seconds
        self.own: frozenset[Identity] = frozenset()
        """What the operator had created before there was a custom resource: it belongs to none."""
        self._kubeconfigs: dict[str, Path] = {}
        self._tokens: dict[str, str] = {}
        """The tokens of service accounts, by user."""

    # --- objects

    def use(self, release: Release) -> None:
        """Let the instances that are started from now on be those of a release, with its service account."""
        self.release = release
        self.account = self.setup.account_of(release) or OWN_ACCOUNT
        self.user = self.account.user
        self._users[self.user] = None

    def install(self) -> None:
        """Create the objects of the release. The operator's workload has no pods, unless the operator knows the name of its own."""
        workload = self.setup.workload(self.release, self.minor)
        trees = [
            with_pods_for_instances(tree, workload)
            if workload is not None and workload.is_made_by(tree)
            else tree
            for tree in self.release.trees(self.minor)
        ]
        for name in self.setup.undefined_namespaces(trees, self.account):
            self._create_namespace(name)
        for tree in sorted(trees, key=object_kinds.install_order):
            self._apply(tree)
            if object_kinds.is_webhook(tree) and not self.setup.webhook_services:
                self._delete(tree)  # the server has looked at it, and nobody serves it
        refused = {meta.name(tree) for tree, _ in self.refused if object_kinds.is_definition(tree)}
        for tree in trees:
            if object_kinds.is_definition(tree) and meta.name(tree) not in refused:
                self.cluster.wait("CustomResourceDefinition", meta.name(tree), "Established")
        if self.setup.account_of(self.release) is None:
            self._apply_own_account()

    def _create_namespace(self, name: str) -> None:
        try:
            self.cluster.get("Namespace", name)
        except NotFound:
            self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def _apply(self, tree: ReadOnlyTree) -> None:
        try:
            self.cluster.apply(tree, namespace=self._namespace_of(tree))
        except (ApiError, KindNotServed) as error:
            self.refused.append((tree, str(error)))

    def _delete(self, tree: ReadOnlyTree) -> None:
        with suppress(NotFound):  # it was refused
            self.cluster.delete(tree["kind"], meta.name(tree))

    def _namespace_of(self, tree: ReadOnlyTree) -> str:
        return meta.namespace(tree) or self.setup.namespace

    def _apply_own_account(self) -> None:
        """Give the operator a service account of this test, with all rights, as its manifests have none."""
        self.cluster.apply(account_with_all_rights(self.account.namespace, self.account.name))

    def create_others(self, namespace: str = "") -> None:
        """Create the objects that the sample needs."""
        for tree in self.setup.sample.others:
            self.cluster.apply(in_namespace(tree, namespace), namespace=namespace or self._namespace_of(tree))

    def create_resource(self, *, name: str = "", namespace: str = "") -> Tree:
        """Create the custom resource of the sample, perhaps under another name."""
        tree = dict(in_namespace(self.setup.sample.resource, namespace))
        if name:
            tree["metadata"] = {**tree["metadata"], "name": name}
        (created,) = self.cluster.create(tree, namespace=namespace or self._namespace_of(tree))
        return dict(created)

    @property
    def resource_target(self) -> tuple[str, str]:
        return self.setup.sample.full_name, meta.name(self.setup.sample.resource)

    @property
    def resource_namespace(self) -> str:
        return self._namespace_of(self.setup.sample.resource)

    def resource(self, *, name: str = "", namespace: str = "") -> Tree:
        kind, own_name = self.resource_target
        return dict(self.cluster.get(kind, name or own_name, namespace=namespace or self.resource_namespace))

    def is_gone(self) -> bool:
        """Return whether the custom resource does not exist."""
        try:
            self.resource()
        except NotFound:
            return True
        return False

    # --- the operator

    @property
    def instances(self) -> Sequence[Instance]:
        return [*self._restarts]

    def start(self, account: Account | None = None) -> Instance:
        """Start one more instance of the operator, with the rights of its service account."""
        number, user = len(self.instances), account or self.account
        path = self._kubeconfig(user)
        workload = self.setup.workload(self.release, self.minor)
        pod = None if workload is None else self._pod(workload, number, self._tokens[user.user])
        instance = ProcessInstance(
            self.release.command,
            kubeconfig=path,
            environment={
                **({} if workload is None else workload.environment),
                **({} if pod is None else pod.environment(self.cluster.url)),
                "MOCKUBE_INSTANCE": str(number),
            },
            pod=pod,
        )
        self._note(instance)
        return instance

    def _pod(self, workload: Workload, number: int, token: str) -> OperatorPod | None:
        """Return the pod that an instance stands for; None if the machine forbids mounts, or nothing can be its pod, as one that is refused."""
        if not can_have_mounts():
            return None
        folder = self._folder / f"pod-{number}"
        folder.mkdir(exist_ok=True)
        try:
            return read_pod(self.cluster, workload, token, number, folder, self.setup.clock)
        except (ApiError, UnsupportedPod):
            return None

    def _note(self, instance: Instance) -> None:
        """Let an instance be started again whenever it ends by itself."""
        backoff = RestartBackoff(
            self.setup.clock,
            first_delay=_FIRST_RESTART_SECONDS,
            max_delay=_MAX_RESTART_SECONDS,
            healthy_after=_HEALTHY_SECONDS,
        )
        backoff.begin()
        self._restarts[instance] = _Restart(backoff=backoff)

    def _kubeconfig(self, account: Account) -> Path:
        if account.user not in self._kubeconfigs:
            self._kubeconfigs[account.user] = self._write_kubeconfig(account)
        return self._kubeconfigs[account.user]

    def _write_kubeconfig(self, account: Account) -> Path:
        name = f"token-of-{account.name}"
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": name,
                    "namespace": account.namespace,
                    "annotations": {"kubernetes.io/service-account.name": account.name},
                },
                "type": "kubernetes.io/service-account-token",
            }
        )
        secret = self.cluster.wait(
            "Secret",
            name,
            lambda tree: (tree.get("data") or {}).get("token"),
            timeout=_TOKEN_SECONDS,
            namespace=account.namespace,
        )
        path = self._folder / f"{account.namespace}-{account.name}.kubeconfig"
        token = base64.b64decode(secret["data"]["token"]).decode()
        self._tokens[account.user] = token
        write_kubeconfig(path, kubeconfig.read(self.cluster.kubeconfig), token, account.namespace)
        return path

    def look_after(self) -> None:
        """Start instances again that have ended by themselves, as a kubelet restarts a container: after a while, and however often."""
        now = self.setup.clock.monotonic()
        for instance, restart in self._restarts.items():
            code = instance.code
            if code is None or instance.is_stopped:
                restart.due = None
            elif restart.due is None:
                self.exits.append(Exit(code=code, log=instance.last_lines()))
                restart.due = now + restart.backoff.next_delay()
            elif now >= restart.due:
                instance.restart()
                restart.backoff.begin()
                restart.due = None

    def is_running(self) -> bool:
        """Return whether no instance that has ended by itself waits for its restart."""
        return all(each.code is None or each.is_stopped for each in self.instances)

    def start_and_settle(self, account: Account | None = None) -> Instance:
        """Start an instance, and wait until it follows the custom resources and is quiet."""
        begin = self.setup.clock.now()
        instance = self.start(account)
        self.wait_until_followed(begin, self.account if account is None else account)
        return instance

    def wait_until_followed(self, begin: datetime, account: Account) -> None:
        """Wait until the operator has read its custom resources since a moment, or has had time to do so, and is quiet."""
        plural, user = self.setup.sample.plural, account.user
        self.wait_for(
            lambda: any(
                each.resource == plural and each.at >= begin for each in self.cluster.calls(user=user)
            ),
            self.setup.start_seconds,
        )
        self.settle()

    def settle_after_write(self, begin: datetime, count: int = 1, seconds: float | None = None) -> bool:
        """Wait until the operator has written so often since a moment, or has had time to do so, and is quiet; return whether it is."""
        self.wait_for(lambda: len(self.writes(begin)) >= count, self.setup.reaction_seconds)
        return self.settle(seconds)

    def stop(self) -> None:
        for instance in self.instances:
            instance.stop()

    # --- waiting

    def pause(self, seconds: float | None = None) -> None:
        """Let the operator and the cluster work for some time."""
        if self.setup.interrupted.wait(self.poll_seconds if seconds is None else seconds):
            raise Interrupted
        self.look_after()

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> float | None:
        """Wait until a condition holds, and return how long it took; None if it does not hold in time."""
        clock = self.setup.clock
        start = clock.monotonic()
        while not condition():
            if clock.monotonic() - start > seconds:
                return None
            self.pause()
        return clock.monotonic() - start

    def settle(self, seconds: float | None = None) -> bool:
        """Wait until nobody has written for the quiet time; False if somebody still writes after some seconds.

        Only the time between two looks counts as quiet: a look at much that was recorded takes long, and nothing happens meanwhile.
        """
        clock, limit = self.setup.clock, self.setup.timeout if seconds is None else seconds
        start, seen, quiet = clock.monotonic(), None, 0.0
        while clock.monotonic() - start < limit:
            now = _last_and_count(self.all_writes())
            if now != seen:
                seen, quiet = now, 0.0
            elif quiet >= self.quiet_seconds:
                return True
            self.pause()
            quiet += self.poll_seconds
        return False

    # --- what it did

    def calls(self, since: datetime | None = None) -> Sequence[RecordedCall]:
        """Return what the operator has sent."""
        return [each for each in self.cluster.calls(user=self.user) if since is None or each.at >= since]

    def calls_for_objects(self, since: datetime | None = None) -> Sequence[RecordedCall]:
        """Return what the operator has sent, without Leases and Events."""
        return [each for each in self.calls(since) if each.resource not in ("leases", "events")]

    def writes(self, since: datetime | None = None) -> Sequence[RecordedCall]:
        """Return the writes of the operator, without Leases, Events and reviews, which are stored nowhere."""
        return [each for each in self.calls(since) if is_write_call(each)]

    def all_writes(self) -> Iterator[RecordedCall]:
        """Return the writes of everybody, without what kubelets say of nodes."""
        return (
            each
            for each in self.cluster.calls(user="*", verb=WRITES)
            if is_write_call(each) and (each.resource != "nodes" or each.user == self.user)
        )

    def changes(self) -> Sequence[ReadOnlyTree]:
        """Return the specs of the changes that the operator made, in all of its releases, the oldest first."""
        found = [each["spec"] for user in self._users for each in self.cluster.changes(user=user)]
        return sorted(found, key=lambda spec: int(spec["revision"]))


@contextmanager
def open_trial(
    setup: Setup, *, release: Release | None = None, minor: str = "", nodes: int = 3
) -> Iterator[TrialCluster]:
    """Yield a trial with the objects of a release; the instances of the operator end with it."""
    requests = max(_RECORDED, setup.resources * _REQUESTS_EACH)
    recorded = [f"--control-requests={requests}", f"--control-changes={_RECORDED}", f"--history={_RECORDED}"]
    services = [f"--webhook-service={each}" for each in setup.webhook_services]
    minor = minor or setup.minor
    with (
        temporary_folder("mockube-operator-") as folder,
        Cluster(nodes=nodes, version=minor, packs="", flags=[*recorded, *services]) as cluster,
    ):
        trial = TrialCluster(setup, cluster, release or setup.release, minor, Path(folder))
        try:
            trial.install()
            yield trial
        finally:
            trial.stop()


def is_write_call(call: RecordedCall) -> bool:
    """Return whether a request would change an object that counts."""
    return is_write(call.verb, resource_of(call))


def _last_and_count(calls: Iterable[RecordedCall]) -> tuple[datetime | None, int]:
    """Return when the last request has arrived, and how many there are, which is the same when old ones are dropped for new ones."""
    last, count = None, 0
    for call in calls:
        last, count = call.at, count + 1
    return last, count


def resource_of(call: RecordedCall) -> str:
    """Return the resource of a request as a Fault names it, such as websites.example.com/status."""
    group = f".{call.group}" if call.group else ""
    return f"{call.resource}{group}{f'/{call.subresource}' if call.subresource else ''}"


def with_pods_for_instances(tree: ReadOnlyTree, workload: Workload) -> ReadOnlyTree:
    """Return the workload of an operator, which runs outside: without pods, or with those that its instances look for."""
    if not workload.knows_its_pod:
        return without_pods(tree)
    return (
        {**tree, "spec": {**tree["spec"], "replicas": INSTANCES}} if object_kinds.has_replicas(tree) else tree
    )


def without_pods(tree: ReadOnlyTree) -> ReadOnlyTree:
    """Return a workload with no replicas, or a DaemonSet for nodes that do not exist."""
    spec: Mapping[str, Any] = tree.get("spec") or {}
    if object_kinds.has_replicas(tree):
        return {**tree, "spec": {**spec, "replicas": 0}}
    template = spec.get("template") or {}
    pod = {**(template.get("spec") or {}), "nodeSelector": {_NO_NODE: "true"}}
    return {**tree, "spec": {**spec, "template": {**template, "spec": pod}}}


def in_namespace(tree: ReadOnlyTree, namespace: str) -> ReadOnlyTree:
    """Return an object in another namespace, if it names one."""
    if not namespace or not meta.namespace(tree):
        return tree
    return {**tree, "metadata": {**tree["metadata"], "namespace": namespace}}
