"""What every controller shares: the client, the caches, the queues, the executor.

A module belongs here if it would serve any controller; it knows no workload.
"""
