"""The running pods that may create what other pods of their namespace wait for: their programs are not simulated.

The ServiceAccount of such a pod may create ConfigMaps or Secrets: the controller of MetalLB, for example, creates a Secret that
the pods of its DaemonSet mount.
"""

from functools import partial
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister
from mockube.client.kinds import SUBJECT_ACCESS_REVIEWS
from mockube.client.podview import RUNNING, PodView
from mockube.client.verbs import AnyResource, Client
from mockube.component_base.clock import Clock
from mockube.container_runtime.behavior import SERVICE
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.predictions import Predictions
from mockube.container_runtime.simulation_values import ASSUME

from .pod_lifecycle.container_context import ContainerContext
from .pod_lifecycle.containers import containers_of
from .shared_work import SharedWork

_SECONDS: Final = 5.0
"""The time for which an answer holds, so that many waiting pods ask once."""
_MAX_ANSWERS: Final = 1_000


class _Answer(NamedTuple):
    pod: str
    until: float


class PossibleCreators:
    def __init__(self, client: Client, pods: Lister[PodView], clock: Clock, predictions: Predictions) -> None:
        self._predictions = predictions
        self._client = client
        self._pods = pods
        self._clock = clock
        self._answers: dict[tuple[str, AnyResource], _Answer] = {}
        self._searches = SharedWork[str]()

    async def find(self, namespace: str, resource: AnyResource) -> str:
        """Return the name of a pod of the namespace that may create objects of a resource there; "" if there is none."""
        key = (namespace, resource)
        answer = self._answers.get(key)
        if answer is not None and self._clock.monotonic() < answer.until:
            return answer.pod
        return await self._searches.run(key, partial(self._search, namespace, resource))

    async def _search(self, namespace: str, resource: AnyResource) -> str:
        pod = ""
        for account, name in self._accounts(namespace).items():
            if await self._may_create(namespace, account, resource):
                pod = name
                break
        if len(self._answers) >= _MAX_ANSWERS:
            self._answers.clear()
        self._answers[namespace, resource] = _Answer(pod, self._clock.monotonic() + _SECONDS)
        return pod

    def _accounts(self, namespace: str) -> dict[str, str]:
        """Return the ServiceAccounts of the running pods whose programs are not simulated, with one pod of each."""
        accounts: dict[str, str] = {}
        for pod in self._pods.in_namespace(namespace):
            account = pod.object["spec"].get("serviceAccountName") or "default"
            if account not in accounts and pod.phase == RUNNING and self.has_unknown_program(pod.object):
                accounts[account] = pod.key.name
        return accounts

    async def _may_create(self, namespace: str, account: str, resource: AnyResource) -> bool:
        review = {
            "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version,
            "kind": SUBJECT_ACCESS_REVIEWS.kind,
            "spec": {
                "user": f"system:serviceaccount:{namespace}:{account}",
                "groups": [
                    "system:serviceaccounts",
                    f"system:serviceaccounts:{namespace}",
                    "system:authenticated",
                ],
                "resourceAttributes": {
                    "namespace": namespace,
                    "verb": "create",
                    "version": "v1",
                    "resource": resource.plural,
                },
            },
        }
        try:
            answer = await self._client.create(SUBJECT_ACCESS_REVIEWS, review)
        except (
            ApiError
        ):  # Without an answer, the pods wait as if nobody might create it; they are checked again.
            return False
        return bool(answer["status"].get("allowed"))

    def has_unknown_program(self, pod: ReadOnlyTree) -> bool:
        """Return whether a container of the pod runs by assumption a program that is not simulated."""
        script = script_of(meta.annotations(pod))
        context = ContainerContext(predictions=self._predictions)
        return self._predictions.unknown_programs(pod) == ASSUME and any(
            (container.program is SERVICE or container.program.is_assumed)
            and not self._predictions.is_simulated(pod, container.spec, script)
            for container, _ in containers_of(pod, script, has_ids=False, context=context).main
        )
