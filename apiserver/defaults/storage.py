"""Defaults of storage.k8s.io: StorageClasses and CSIDrivers."""

from typing import Final

from apiserver.defaults.table import of

DEFAULTS: Final = of(
    "io.k8s.api.storage.v1",
    {
        "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
        "CSIDriverSpec": {
            "attachRequired": True,
            "podInfoOnMount": False,
            "volumeLifecycleModes": ["Persistent"],
            "storageCapacity": False,
            "fsGroupPolicy": "ReadWriteOnceWithFSType",
            "requiresRepublish": False,
            "seLinuxMount": False,
        },
    },
)
