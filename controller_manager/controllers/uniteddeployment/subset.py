"""A subset as it is found: its workload and pods, in the words that are the same for every kind of workload."""

from dataclasses import dataclass

from apimachinery import meta
from controller_manager.controllers.uniteddeployment.names import (
    ANNOTATION_SUBSET_PATCH,
    LABEL_REVISION,
    LABEL_SUBSET_NAME,
)
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subset:
    workload: Tree
    pods: tuple[PodView, ...]
    partition: int

    @property
    def name(self) -> str:
        return meta.labels(self.workload).get(LABEL_SUBSET_NAME, "")

    @property
    def revision(self) -> str:
        """The UnitedDeployment's revision that the workload was last written for."""
        return meta.labels(self.workload).get(LABEL_REVISION, "")

    @property
    def patch(self) -> str | None:
        """The text of the patch that was written into it; None if nobody wrote one, be it empty."""
        return meta.annotations(self.workload).get(ANNOTATION_SUBSET_PATCH)

    @property
    def spec_replicas(self) -> int:
        replicas = self.workload["spec"].get("replicas")
        return 1 if replicas is None else int(replicas)

    @property
    def replicas(self) -> int:
        return self._count("replicas")

    @property
    def ready_replicas(self) -> int:
        return self._count("readyReplicas")

    def _count(self, field: str) -> int:
        return (self.workload.get("status") or {}).get(field) or 0

    def updated(self, revision: str) -> tuple[PodView, ...]:
        """The pods of a revision that count as replicas."""
        return tuple(pod for pod in self.pods if pod.is_active and revision_of(pod) == revision)


def revision_of(pod: PodView) -> str:
    return pod.labels.get(LABEL_REVISION, "")
