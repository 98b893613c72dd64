"""The rows of the built-in resources, without a server."""

from mockube.apiserver.kinds.built_in_kinds import GROUPS


def catalog():
    """Return every built-in resource by group, version and name."""
    return {(row.group, row.version, row.name): row for group in GROUPS for row in group.resources}
