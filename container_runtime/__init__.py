"""What runs in a container, behind the contract in `runtime`, as CRI is one for a kubelet.

A module belongs here if it is what a container runtime provides to a kubelet: programs, their files, streams and network. It
knows no nodes, no informers and no kubelet; what it needs of these is handed in.
"""
