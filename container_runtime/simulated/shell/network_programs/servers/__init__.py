"""The programs that serve what a configuration says.

A module belongs here if it is such a program: it reads the configuration, names what is wrong with it, listens, and reloads it. `registry`
lists them; what they answer is in `simulated.configured`.
"""
