"""What can be done with a part of an object, or through it.

A module belongs here if it carries out the verbs of one subresource that is not simply another way in to the object.
"""
