"""How cost grows with nodes, pods, watchers and stored objects.

`python -m benchmarks.growth` measures, writes docs/benchmarks/growth.json and draws the curves beside it. A module belongs here
if it measures one of these, or draws.
"""
