"""The programs that serve what a configuration says: each reads it, names what is wrong with it, listens, and reloads it.

`registry` lists them; what they answer is in `simulated.configured`.
"""
