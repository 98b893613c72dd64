"""The block in which a cluster is the default of this process, for programs that are not told which cluster to use.

A module belongs here if it changes or restores where client libraries find their cluster. No library is imported for that.
"""
