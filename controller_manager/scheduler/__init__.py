"""The scheduler: each pod that has no node yet gets the best that can take it, or is told why there is none.

It stands for kube-scheduler with its default profile, and can be left out where that one runs. A module belongs here if
it takes part in that.
"""
