"""What a user holds: the command line, the cluster handle and the pytest plugin.

A module belongs here if a person calls it by name. It may use every other package; none may use it.
"""

from mockube.exports import __getattr__

__all__ = ["AsyncCluster", "Cluster", "__getattr__"]
