"""The kinds of autoscaling.

A module belongs here if it describes one of them.
"""
