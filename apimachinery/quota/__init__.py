"""What objects use of a ResourceQuota, and what it allows: shared by admission, which charges, and by the controller, which counts.

A module belongs here if it says what one resource uses, or computes with amounts. Pure.
"""
