"""Pods that are updated where they run, and the states in which others may hold them meanwhile.

Pure. What several workloads do with their pods alike belongs here; which pods are updated, when and to what is each
workload's own. Names and texts are those of OpenKruise, so that its tools read what is written here.
"""
