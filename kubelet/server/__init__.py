"""The HTTPS API of the simulated kubelets: logs, exec, attach, port-forward and health, one listener for all nodes.

A module belongs here if it serves requests of the API server, or of users of `nodes/proxy`, at a real kubelet's paths. What
is in a container, it asks of the container's run-time.
"""
