"""The audit log: the policy that chooses what is logged, and the events.

A module belongs here if it decides what the log contains, or writes it.
"""
