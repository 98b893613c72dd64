"""The patch release of each minor, from whose Go modules everything is derived."""

from tools.minors.gomodules import Release

CURRENT = Release("1.36", "1.36.3")
RELEASES = (
    Release("1.35", "1.35.4"),
    Release("1.34", "1.34.4"),
    Release("1.33", "1.33.13"),
    Release("1.32", "1.32.13"),
    Release("1.31", "1.31.14", {"kube-aggregator": "0.31.0"}),
    Release("1.30", "1.30.14"),
    Release("1.29", "1.29.15", {"apiextensions-apiserver": "0.29.6", "kube-aggregator": "0.29.6"}),
)
"""From the newest to the oldest. Modules are of the same patch, where there is one of that patch."""
