"""The kinds of older minor releases, derived from those of the newest.

A module belongs here if it describes how the kinds of a minor differ: which are served, which fields are behind gates
that were off, which values were not allowed yet. Types and gates are data of `apimachinery/schema/minors.py`.
"""
