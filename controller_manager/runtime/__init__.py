"""What every controller shares: the client, the caches, the queues, the executor. It knows no workload."""
