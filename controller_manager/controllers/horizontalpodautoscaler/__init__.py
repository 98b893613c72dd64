"""HorizontalPodAutoscalers: set the scale of a target to what its metrics ask for.

A module belongs here if it decides that, or asks for what is decided by. `replicas` calculates, `behavior` limits,
`scaling` decides: all pure; `controller` carries out. Upstream: pkg/controller/podautoscaler.
"""
