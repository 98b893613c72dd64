"""An observed subset: its workload and pods, whatever their kind; and OpenKruise's labels, annotations and reasons."""

from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView

LABEL_SUBSET_NAME: Final = "apps.kruise.io/subset-name"
LABEL_REVISION: Final = "apps.kruise.io/controller-revision-hash"
"""The name of the UnitedDeployment's revision, on workloads and their pods."""
LABEL_RESERVED_POD: Final = "apps.kruise.io/united-deployment-reserved-pod"
ANNOTATION_SUBSET_PATCH: Final = "apps.kruise.io/subset-patch"

CONDITION_PROVISIONED: Final = "SubsetProvisioned"
CONDITION_SUBSETS_UPDATED: Final = "SubsetUpdated"
CONDITION_FAILURE: Final = "SubsetFailure"
CONDITION_UPDATED: Final = "UnitedDeploymentUpdated"
CONDITION_SCHEDULABLE: Final = "Schedulable"
"""A condition of a subset; the others are those of a UnitedDeployment."""

REASON_UPDATED_SUBSETS: Final = "SuccessfulUpdateSubset"
REASON_FAILED_SUBSETS: Final = "FailedUpdateSubset"
REASON_FAILED_REVISION: Final = "FailedRevisionProvision"
REASON_FAILED_FIND: Final = "FailedFindSubsets"
REASON_NOT_FOUND_SUBSETS: Final = "Failed FindSubsets"
"""With a blank, as upstream writes it. This Event follows one with another reason."""
REASON_FAILED_DUPLICATES: Final = "FailedDeleteDuplicatedSubsets"
REASON_FAILED_ALLOCATION: Final = "Failed SpecifySubsetReplicas"


class Subset(Struct, frozen=True, kw_only=True, eq=False):
    workload: ReadOnlyTree
    pods: tuple[PodView, ...]
    partition: int

    @property
    def name(self) -> str:
        return meta.labels(self.workload).get(LABEL_SUBSET_NAME, "")

    @property
    def revision(self) -> str:
        """The UnitedDeployment's revision that the workload was last updated to."""
        return meta.labels(self.workload).get(LABEL_REVISION, "")

    @property
    def patch(self) -> str | None:
        """The text of the patch in the workload's annotation, which may be empty; None without the annotation."""
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

    def pods_of_revision(self, revision: str) -> tuple[PodView, ...]:
        """Return the pods of a revision that count as replicas."""
        return tuple(pod for pod in self.pods if pod.is_active and revision_of(pod) == revision)


def revision_of(pod: PodView) -> str:
    return pod.labels.get(LABEL_REVISION, "")
