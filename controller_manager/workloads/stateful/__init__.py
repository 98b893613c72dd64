"""Sets of pods that have each a name, an order and storage of their own: what all kinds of StatefulSets do alike.

Pure. What belongs here holds of every such kind; what a kind does in its own way it says with `reconciliation.Kind`.
"""
