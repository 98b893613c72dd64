"""The lifecycle of a pod on a simulated node.

A module belongs here if it decides from a pod and the time alone: no clock, no client, no state between two calls.
"""
