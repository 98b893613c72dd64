"""The scheduler: binds each pod to the best feasible node, or reports in its status why there is none.

It behaves like kube-scheduler with the same configuration, and is disabled if that one runs. A module belongs here if it is
part of scheduling.
"""
