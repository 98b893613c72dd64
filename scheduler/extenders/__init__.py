"""The extenders of the scheduler: HTTP servers that filter and score nodes, choose victims, or bind pods.

A module belongs here if it sends something to an extender, or reads what it returns. Upstream: pkg/scheduler/extender.go.
"""
