"""The usage of objects for a ResourceQuota, and its limits: shared by admission, which charges, and by the controller,
which counts.

A module belongs here if it computes the usage of one resource, or computes with amounts. Pure.
"""
