"""OpenKruise's workloads, as its release 1.9 fills them in and checks them.

A module belongs here if it holds what one kind's webhooks do, or what several of them share.
"""
