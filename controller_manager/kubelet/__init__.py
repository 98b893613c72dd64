"""What stands for machines: nodes, and the pods that live on them.

A module belongs here if it plays a part of a node or of its kubelet. `life/` decides how a pod lives, `stages/` reads
and plays kwok's `Stage` documents; both are pure and end in the same effects, which the engine carries out.
"""
