"""The kinds of workloads that subsets may be: a row each, behind one small interface.

Their differences belong here; no other module may depend on a workload's kind.
"""
