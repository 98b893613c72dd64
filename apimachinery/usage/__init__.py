"""The simulated usage of containers: by kwok's ResourceUsages, by annotations, or by their requests.

A module belongs here if it computes the usage of a container. Pure: objects and the time are arguments.
"""
