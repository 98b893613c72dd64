"""The kinds of workloads that subsets may be: a row each, behind one small interface.

A module belongs here if it has what differs between these kinds; no other module may depend on a workload's kind.
"""
