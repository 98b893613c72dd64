"""The cost of calls during an evaluation, and the ranges of sizes and costs. Estimates are in `mockube.apiserver.cel`.

The units are cel-go's: 1 for a step, 0.1 for a character that is traversed. A module belongs here if it defines costs.
"""
