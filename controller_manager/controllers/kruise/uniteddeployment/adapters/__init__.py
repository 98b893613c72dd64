"""The kinds of workloads of subsets, behind one interface.

A module belongs here if it describes one of these kinds; no other module may depend on a workload's kind.
"""
