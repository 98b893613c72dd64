"""The usage of objects that a ResourceQuota limits, for the admission plugin and the controller.

A module belongs here if it computes the usage of one resource, or computes with amounts. Pure.
"""
