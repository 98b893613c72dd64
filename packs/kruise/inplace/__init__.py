"""In-place updates of pods, and the lifecycle states in which hooks hold pods. Pure.

A module belongs here if several workloads use it; each workload chooses the pods to update, and the change. Names and
texts are OpenKruise's, so that its tools can read them.
"""
