"""What simulated containers use of resources: by kwok's ResourceUsages, by annotations, or by what they request.

A module belongs here if it says how much a container uses. Pure: the objects and the time come in.
"""
