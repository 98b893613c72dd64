"""kwok's `Stage` documents: what they say, which of them is next for an object, and what it does.

A module belongs here if it reads or plays such documents. What kwok can say and this cannot is refused by its name.
"""
