"""The controller of Services with the type LoadBalancer: it allocates their external addresses.

A module belongs here if it allocates or releases such addresses. They are not reachable.
"""
