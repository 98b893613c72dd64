"""What runs in a container.

A module belongs here if it is what a container runtime provides to a kubelet: programs, their files, streams and network. It
knows no nodes, no informers and no API objects beyond the specs that it is given.
"""
