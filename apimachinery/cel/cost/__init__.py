"""The cost of expressions: the estimated range before an evaluation, and the actual cost of calls during it.

The units are cel-go's: 1 for a step, 0.1 for a character that is traversed. A module belongs here if it defines costs.
"""
