"""The health of nodes: silent ones become unknown, and conditions become taints.

A module belongs here if it watches over nodes. What becomes of pods on tainted nodes is `controllers.tainteviction`'s.
"""
