"""The controller that deletes finished Jobs after their time to live.

A module belongs here if it decides when to delete such Jobs. Upstream: pkg/controller/ttlafterfinished.
"""
