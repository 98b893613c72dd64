"""What the judgements share: the set-up, the undisturbed state, the rights that were used, and the commands to do it by hand."""

import asyncio
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kubeconfig
from mockube.command_client import open_client
from mockube.control_objects import ROLE_ADVICES, post
from mockube.failure import Failure
from mockube.lint.renderers import CHART_FILE, ChartOptions
from mockube.objects.manifests import KUSTOMIZATIONS

from . import object_kinds
from .inputs import Account, Release
from .reference import Reference, note_own_objects
from .trial_cluster import OWN_ACCOUNT, Setup, TrialCluster, open_trial

CLUSTER = "by-hand"
OWN_KUBECONFIG = "operator.kubeconfig"
"""The kubeconfig of the operator by hand."""


_EXISTING_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


class NotApplicable(Failure):
    """A judgement cannot be made for this operator; the message says why."""


class Context(Struct, kw_only=True):
    setup: Setup
    on_step: Callable[[str], None] = lambda _: None
    reference: Reference | None = None
    """The state at rest that the first judgement has found; None before it, and if there is none."""
    no_reference: str = "the operator reached no state at rest when nothing was disturbed: see `install`"
    """Why there is no such state."""
    left_out: Sequence[str] = ()
    """The judgements that were not chosen."""
    advices: list[ReadOnlyTree] = field(default_factory=list)
    """What RoleAdvice said of the operator at the end of each trial."""

    @property
    def expected(self) -> Reference:
        if self.reference is None:
            raise NotApplicable(self.no_reference)
        if not self.reference.objects:
            raise NotApplicable(
                "the operator wrote nothing when nothing was disturbed, so there is no state to compare with"
            )
        return self.reference

    def require_reference(self) -> None:
        """Raise NotApplicable if there is no undisturbed state to compare with."""
        assert self.expected is not None

    def subject(self, tree: ReadOnlyTree) -> str:
        """Return an object that the operator has created as the subject of a finding, which is the same in each run."""
        return f"{tree.get('kind', 'object')} {self.expected.role_of(tree)[2]}"

    @contextmanager
    def trial(
        self, *, release: Release | None = None, minor: str = "", nodes: int = 3
    ) -> Iterator[TrialCluster]:
        """Yield a trial, and note at its end which rights the operator used."""
        with open_trial(self.setup, release=release, minor=minor, nodes=nodes) as trial:
            yield trial
            self.advices.append(read_advice(trial))

    @contextmanager
    def running(self, *, minor: str = "", nodes: int = 3) -> Iterator[TrialCluster]:
        """Yield a trial with a running operator that has finished the custom resource of the sample."""
        self.require_reference()
        with self.trial(minor=minor, nodes=nodes) as trial:
            trial.create_others()
            trial.start_and_settle()
            note_own_objects(trial)
            trial.create_resource()
            self.wait_for_state(trial)
            trial.settle()
            yield trial

    def wait_for_state(self, trial: TrialCluster, seconds: float | None = None) -> float | None:
        """Wait until a trial has the undisturbed state, and return how long it took; None if it has not in time."""
        limit = self.setup.timeout if seconds is None else seconds
        return trial.wait_for(lambda: not self.expected.differences(trial), limit)

    # --- by hand

    @property
    def set_up(self) -> list[str]:
        """The commands that start a cluster with the operator."""
        release = self.setup.release
        account = self.setup.account_of(release)
        own = OWN_KUBECONFIG
        services = [f"--webhook-service={each}" for each in self.setup.webhook_services]
        commands = [
            " ".join([f"mockube up --detach --name={CLUSTER}", *services]),
            f"export KUBECONFIG=$(mockube kubeconfig --name={CLUSTER} --path)",
            *self._namespace_commands(account),
            *(apply_command(name, release.chart) for name in release.names),
            *self._webhook_commands(),
        ]
        if account is not None:
            commands += [
                f"cp $KUBECONFIG {own}",
                (
                    f"kubectl --kubeconfig={own} config set-credentials operator"
                    f" --token=$(kubectl create token {account.name} -n {account.namespace})"
                ),
                f"kubectl --kubeconfig={own} config set-context --current --user=operator",
            ]
        return [*commands, self.start_command]

    def _namespace_commands(self, account: Account | None) -> Iterator[str]:
        trees = self.setup.release.trees()
        for name in self.setup.undefined_namespaces(trees, account or OWN_ACCOUNT):
            if name not in _EXISTING_NAMESPACES:
                yield f"kubectl create namespace {name}"

    def _webhook_commands(self) -> Iterator[str]:
        """Yield what deletes configurations of webhooks that nobody serves, which trials leave out."""
        if self.setup.webhook_services:
            return
        for tree in filter(object_kinds.is_webhook, self.setup.release.trees()):
            yield f"kubectl delete {target(tree)}   # --webhook-service says where it is served"

    def by_hand(self, *more: str) -> list[str]:
        """Return the commands after the set-up: those that create the custom resource, and more."""
        return [f"kubectl apply {_files(self.setup.sample.names)}", *more]

    @property
    def start_command(self) -> str:
        """The command that starts the operator by hand, with the rights of its service account."""
        setup = self.setup
        workload = setup.workload(setup.release)
        environment = {} if workload is None else dict(workload.environment)
        if setup.account_of(setup.release) is not None:
            environment["KUBECONFIG"] = OWN_KUBECONFIG
        variables = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
        return " ".join([*variables, shlex.join(setup.release.command), "&"])

    @property
    def resource(self) -> str:
        """The custom resource for kubectl, with its namespace."""
        sample = self.setup.sample
        namespace = self.setup.sample.resource["metadata"].get("namespace", self.setup.namespace)
        place = f" -n {namespace}" if sample.is_namespaced else ""
        return f"{sample.full_name} {sample.resource['metadata']['name']}{place}"

    @property
    def user(self) -> str:
        """The user of the operator by hand."""
        account = self.setup.account_of(self.setup.release)
        return "kubernetes-admin" if account is None else account.user


def _files(names: Sequence[str]) -> str:
    return " ".join(f"-f {shlex.quote(name)}" for name in names)


def apply_command(name: str, chart: ChartOptions) -> str:
    """Return the command that installs an input: a chart, a kustomization, or files."""
    path = Path(name)
    if (path / CHART_FILE).is_file() or name.endswith(".tgz"):
        flags = shlex.join([f"--namespace={chart.namespace}", "--include-crds", *chart.flags])
        return f"helm template {chart.release} {shlex.quote(name)} {flags} | kubectl apply --server-side -f -"
    is_kustomization = any((path / file).is_file() for file in KUSTOMIZATIONS)
    return f"kubectl apply --server-side {'-k' if is_kustomization else '-f'} {shlex.quote(name)}"


def read_advice(trial: TrialCluster) -> ReadOnlyTree:
    """Return what RoleAdvice says of the operator: what it may do and never did, and what was refused."""

    async def post_advice() -> Any:
        access = kubeconfig.read(trial.cluster.kubeconfig)
        async with open_client(access, trial.setup.clock) as client:
            return await post(client, ROLE_ADVICES, {"user": trial.user})

    advice: Mapping[str, Any] = asyncio.run(post_advice())
    return advice


def about(tree: ReadOnlyTree) -> str:
    """Return an object for a message, such as `ConfigMap web`."""
    return f"{tree.get('kind', 'object')} {(tree.get('metadata') or {}).get('name', '')}"


def target(tree: ReadOnlyTree) -> str:
    """Return an object for kubectl, such as `configmap/web -n default`."""
    kind = str(tree.get("kind", "")).lower()
    group = str(tree.get("apiVersion", "")).rpartition("/")[0]
    namespace = (tree.get("metadata") or {}).get("namespace", "")
    name = (tree.get("metadata") or {}).get("name", "")
    return f"{f'{kind}.{group}' if group else kind}/{name}{f' -n {namespace}' if namespace else ''}"
