"""Events: what controllers say about objects, for people.

A module belongs here if it decides how often something is said, what an Event looks like, or writes it.
"""
