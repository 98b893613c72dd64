"""The HTTPS API of the simulated kubelets: logs, exec, attach, port-forward and health, one listener for all nodes.

What belongs here takes requests of the API server, or of whoever may use `nodes/proxy`, at a real kubelet's paths. What a
container contains and does is in `containers` and `shell`.
"""
