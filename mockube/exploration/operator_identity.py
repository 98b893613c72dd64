"""Who an operator is in all runs: its service account with a token, and the pods of the cluster that it stands for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import SERVICE_ACCOUNTS
from mockube.client.resources import Key, row
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.failure import Failure
from mockube.objects.requests import ObjectRequests
from mockube.operators.account import UNDER_TEST, account_with_all_rights
from mockube.operators.operator_pod import INSTANCES, OperatorPod, pods_of, read_operator_pod, runs

from .plans import SECOND
from .scenario import NAMESPACE, ObjectRef, Scenario

_BINDINGS: Final = row(
    "rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
_TOKEN_SECONDS: Final = 86_400
_DEFAULT_ACCOUNT: Final = "default"


class OperatorIdentity(Struct, frozen=True, kw_only=True):
    namespace: str
    """The namespace of its kubeconfig."""
    account: Key
    token: str
    pods: Sequence[OperatorPod] = ()
    """The pods that it stands for, one for each that runs at the same time; empty if it stands for none."""

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.account.namespace}:{self.account.name}"


class _Workload:
    """The workload of an operator, which runs outside of the cluster in place of its pods."""

    def __init__(self, ref: ObjectRef, tree: ReadOnlyTree) -> None:
        spec: dict[str, Any] = tree.get("spec") or {}
        template = (spec.get("template") or {}).get("spec")
        if not template or not spec.get("selector"):
            raise Failure(f"{ref}: it has no pods")
        self._ref, self._tree, self._replicas = ref, tree, spec.get("replicas")
        self.account = Key(meta.namespace(tree), template.get("serviceAccountName") or _DEFAULT_ACCOUNT)

    async def scale(self, requests: ObjectRequests) -> None:
        """Let there be a pod for each operator that runs at the same time."""
        if isinstance(self._replicas, int) and self._replicas < INSTANCES:
            await requests.scale((self._ref.target, None, INSTANCES), self._ref.namespace)
            self._replicas = INSTANCES

    async def running_pods(self, client: Client, clock: Clock, seconds: float) -> Sequence[ReadOnlyTree]:
        """Wait until the pods run, and return them; raise Failure if they do not in time."""
        number = min(self._replicas, INSTANCES) if isinstance(self._replicas, int) else 1
        pods = await pods_of(client, self._tree, number, clock, seconds)
        running = [*filter(runs, pods)]
        if len(running) < number:
            raise Failure(f"{self._ref}: {_why_not(pods)}, after {seconds:g} s")
        return running[:INSTANCES]


def _why_not(pods: Sequence[ReadOnlyTree]) -> str:
    """Return why not enough of the pods run."""
    for pod in pods:
        status = pod.get("status") or {}
        if not runs(pod):
            states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
            reasons = [state["waiting"].get("reason") for state in states if state.get("waiting")]
            return f"pod {meta.name(pod)} does not run: {next(filter(None, reasons), status.get('phase', 'Pending'))}"
    return "it has no pods"


async def identity_of_operator(
    client: Client, requests: ObjectRequests, scenario: Scenario, folder: Path, clock: Clock
) -> OperatorIdentity:
    """Return the account of the scenario, or one with all rights, which is created; with the pods of a workload, it is theirs."""
    if scenario.pod_of is not None:
        return await _identity_of_pods(client, requests, scenario, folder, clock)
    if scenario.service_account:
        namespace, _, name = scenario.service_account.partition("/")
        token = await _token(client, Key(namespace, name))
        return OperatorIdentity(namespace=namespace, account=Key(namespace, name), token=token)
    account = Key("kube-system", UNDER_TEST)
    for resource, tree in zip((SERVICE_ACCOUNTS, _BINDINGS), account_with_all_rights(*account), strict=True):
        await client.create(resource, tree)
    return OperatorIdentity(namespace=NAMESPACE, account=account, token=await _token(client, account))


async def _identity_of_pods(
    client: Client, requests: ObjectRequests, scenario: Scenario, folder: Path, clock: Clock
) -> OperatorIdentity:
    assert scenario.pod_of is not None
    ref = scenario.pod_of
    workload = _Workload(ref, await requests.get(ref.target, None, ref.namespace))
    if SECOND not in scenario.without:
        await workload.scale(requests)
    token = await _token(client, workload.account)
    running = await workload.running_pods(client, clock, scenario.timeout)
    place = folder / "pods"
    place.mkdir()
    pods = [await read_operator_pod(client, pod, token, place, clock.now()) for pod in running]
    return OperatorIdentity(
        namespace=workload.account.namespace, account=workload.account, token=token, pods=pods
    )


async def _token(client: Client, account: Key) -> str:
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {},
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    answer = await client.create(SERVICE_ACCOUNTS, request, key=account, subresource="token")
    return str(answer["status"]["token"])
