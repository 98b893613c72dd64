"""The kinds of workloads that subsets may be: a row each, behind one small interface.

What differs between them belongs here, and nothing else may ask of which kind a workload is.
"""
