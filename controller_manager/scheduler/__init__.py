"""The scheduler: each pod without a node is bound to the best feasible one, or its condition reports why there is none.

It is kube-scheduler with its default profile, and can be left out where that one runs. A module belongs here if
it takes part in that.
"""
