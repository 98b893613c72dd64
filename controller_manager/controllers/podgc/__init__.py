"""The collection of pods that no other controller deletes.

A module belongs here if it decides which pods those are, or deletes them.
"""
