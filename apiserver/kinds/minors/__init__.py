"""The kinds of older minor releases, derived from those of the newest.

A module belongs here if it says in what a minor's kinds differ: which there are, which fields are behind gates that were
off, which values were not allowed yet. Types and gates themselves are data of `apimachinery/schema/minors.py`.
"""
