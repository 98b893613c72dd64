"""Gates that are off by default, and whose fields a server keeps if they are on."""

from typing import Final

FIELD_GATES: Final = frozenset(
    {
        "AtomicWriteVolumeUserFields",
        "EmptyDirVolumeMode",
        "EvictionRequestAPI",
        "GRPCContainerProbeTLS",
        "H2CContainerProbe",
        "VolumeBindMountOptions",
    }
)
