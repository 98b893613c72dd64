"""The controllers of the pack `kruise`: those of OpenKruise.

A folder belongs here if it is a controller of openkruise/kruise. Code that it shares with others is in `workloads`.
"""
