"""The subresources that have verbs of their own.

A module belongs here if it implements the verbs of one subresource, other than a plain view of the object.
"""
