"""The webhooks of OpenKruise: the defaults and the validation of its workloads.

A module belongs here if it implements the webhooks of one kind, or rules that several share.
"""
