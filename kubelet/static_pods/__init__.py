"""Static pods: those that a kubelet runs from the manifests on the disk of its node.

What reads the manifests, and what keeps the mirror pods in the API like them, belongs here; how a pod runs does not.
"""
