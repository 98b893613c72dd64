"""kwok's `Stage` documents: parsing, the choice of an object's next stage, and its effects.

A module belongs here if it reads or applies such documents. Unsupported fields of kwok are refused by name.
"""
