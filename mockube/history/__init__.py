"""The past of objects, as people read it (the server keeps it): versions of an object from its Changes, which field who set, and differences of moments.

A module belongs here if it turns what the control API and the past API return into that. What prints it is in `mockube/cli/`.
"""
