"""The controller of HorizontalPodAutoscalers: it scales a target by its metrics.

A module belongs here if it is part of this controller. `replicas` calculates replicas, `behavior` limits them, and
`scaling` decides: they are pure. `controller` executes the decision. Upstream: pkg/controller/podautoscaler.
"""
