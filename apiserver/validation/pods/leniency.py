"""What an old pod, or template of pods, may keep that a new one may not have: rules came later than it, or go away."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Leniency:
    """Each is true if the old one did what the name says, which is wrong."""

    deletion_cost: bool = False
    """Had a cost of its deletion that is no number."""
    huge_pages: bool = False
    """Asked for parts of huge pages."""
    selector_values: bool = False
    """Selected pods, for affinity, by values that no label can have."""
    node_affinity_values: bool = False
    """Selected nodes so."""
    spread_selectors: bool = False
    """Selected pods so, for spreading."""
    spread_label_keys: bool = False
    """Named keys of labels for spreading that its selector names too."""
    token_paths: bool = False
    """Had the file of a token lie outside its volume."""
    host_sysctls: bool = False
    """Set kernel parameters of the host."""
    selinux_policy: bool = False
    """Said how SELinux labels change."""
    comparisons: bool = False
    """Compared the values of taints as numbers."""
    host_network_users: bool = False
    """Had its own users in the host's network."""
    volume_devices: bool = False
    """Had its own users and devices."""
    restarting_resizes: bool = False
    """Had an init container, no sidecar, be restarted by a resize."""


STRICT = Leniency()
