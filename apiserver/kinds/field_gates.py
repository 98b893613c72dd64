"""Gates that are off by default: those whose fields a server keeps if they are on, and those with other rules."""

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
RULE_GATES: Final = frozenset({"StatefulSetRecreateStrategy"})
"""Gates with which kinds have another validation."""
