"""Labels, annotations, conditions and reasons that OpenKruise gives meaning to. Data only."""

from typing import Final

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
"""Of a subset."""

REASON_UPDATED_SUBSETS: Final = "SuccessfulUpdateSubset"
REASON_FAILED_SUBSETS: Final = "FailedUpdateSubset"
REASON_FAILED_REVISION: Final = "FailedRevisionProvision"
REASON_FAILED_FIND: Final = "FailedFindSubsets"
REASON_NOT_FOUND_SUBSETS: Final = "Failed FindSubsets"
"""With a blank, as upstream writes it: what comes of the other one."""
REASON_FAILED_DUPLICATES: Final = "FailedDeleteDuplicatedSubsets"
REASON_FAILED_ALLOCATION: Final = "Failed SpecifySubsetReplicas"
