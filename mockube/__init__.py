"""What a user holds: the command line, and later the cluster handle and the pytest plugin.

A module belongs here if a person calls it by name. It may use every other package; none may use it.
"""
