"""Sets of pods with stable names, an order and storage: what all kinds of StatefulSets have in common.

Pure. A module belongs here if every such kind uses it; each kind defines its differences in a `reconciliation.Kind`.
"""
