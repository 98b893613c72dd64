"""OpenKruise 1.9: the defaults and the validation of its workloads.

A module belongs here if it holds what the webhooks of one kind do, or what several of them share.
"""
