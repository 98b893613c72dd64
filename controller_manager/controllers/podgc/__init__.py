"""The collection of pods that nobody will collect otherwise.

A module belongs here if it decides which pods those are, or deletes them.
"""
