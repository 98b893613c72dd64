"""The HTTPS API of the simulated kubelets: logs, exec, attach, port-forward and health, one listener for all nodes.

A module belongs here if it serves requests of the API server, or of users of `nodes/proxy`, at a real kubelet's paths. The
files and commands of containers are in `containers` and `shell`.
"""
