"""The lifecycle of a pod on a simulated node.

A module belongs here if it computes from a pod and the time alone: no clock, no client, no state between two calls.
`pod` returns the next step of a pod, `containers` starts and stops its containers, `phase` computes its phase, and
`pod_conditions` its conditions.
"""
