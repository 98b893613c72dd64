"""The simulated usage of containers, from kwok's ResourceUsages, annotations, or requests.

A module belongs here if it computes the usage of a container. Pure: objects and the time are arguments.
"""
