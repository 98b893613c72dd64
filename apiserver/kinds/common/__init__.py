"""What several kinds share: object metadata, selectors, addresses, conditions, and the rules that validation is made of.

A module belongs here if kinds of several groups use it.
"""
