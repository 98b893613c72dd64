"""The rows of storage.k8s.io."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="storage.k8s.io",
    resources=(
        Resource(group="storage.k8s.io", version="v1", name="csidrivers", kind="CSIDriver", namespaced=False),
        Resource(group="storage.k8s.io", version="v1", name="csinodes", kind="CSINode", namespaced=False),
        Resource(
            group="storage.k8s.io", version="v1", name="csistoragecapacities", kind="CSIStorageCapacity"
        ),
        Resource(
            group="storage.k8s.io",
            version="v1",
            name="storageclasses",
            kind="StorageClass",
            namespaced=False,
            short_names=("sc",),
        ),
        Resource(
            group="storage.k8s.io",
            version="v1",
            name="volumeattachments",
            kind="VolumeAttachment",
            namespaced=False,
            subresources=(STATUS,),
        ),
        Resource(
            group="storage.k8s.io",
            version="v1",
            name="volumeattributesclasses",
            kind="VolumeAttributesClass",
            namespaced=False,
            short_names=("vac",),
        ),
    ),
)
