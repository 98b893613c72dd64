"""HorizontalPodAutoscalers: scale a target by its metrics.

A module belongs here if it decides that, or reads the metrics. `replicas` calculates, `behavior` limits,
`scaling` decides: all pure; `controller` carries out. Upstream: pkg/controller/podautoscaler.
"""
