"""OpenKruise's controllers: the pack `kruise`.

A folder belongs here if it is a controller of openkruise/kruise; what it shares with others is in `workloads`.
"""
