"""Python in simulated containers: a tree-walking interpreter with a value model and limits of its own.

A module belongs here if it does what Python, or a module of its library, does for a script. Nothing of this process is in reach of
scripts: the methods of built-in types are whitelists, and all other values are kinds of its own.
"""
