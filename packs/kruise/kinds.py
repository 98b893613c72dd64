"""The rows of OpenKruise's kinds, and the label by which users delete pods of theirs."""

from typing import Final

from mockube.client.resources import row

UNITED_DEPLOYMENTS: Final = row("apps.kruise.io/v1alpha1", "uniteddeployments", "UnitedDeployment")
CLONE_SETS: Final = row("apps.kruise.io/v1alpha1", "clonesets", "CloneSet")
ADVANCED_STATEFUL_SETS: Final = row("apps.kruise.io/v1beta1", "statefulsets", "StatefulSet")

LABEL_SPECIFIED_DELETE: Final = "apps.kruise.io/specified-delete"
"""A user's request to delete a pod."""
