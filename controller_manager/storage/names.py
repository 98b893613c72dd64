"""Names that give volumes, claims and classes meaning, beside those of `apimachinery.wellknown`."""

from typing import Final

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the node of its first consumer, chosen by the scheduler."""
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
"""On a claim: who is to make its volume."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
"""On a volume: who made it, and will delete it."""
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
BETA_DEFAULT_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
IN_TREE_PREFIX: Final = "kubernetes.io/"

MIGRATED: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The drivers that do what plugins inside Kubernetes did."""
