"""What a container is made from, as CRI's ContainerConfig is: its environment, and the files that API objects give its volumes. Pure.

A module belongs here if it computes from a pod and the objects that the pod refers to, for any run-time.
"""
