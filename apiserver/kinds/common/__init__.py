"""Parts that several kinds share: object metadata, selectors, addresses, conditions, and the rules of validation.

A module belongs here if kinds of several groups use it.
"""
