"""The controller of Services with the type LoadBalancer: it allocates their external addresses.

A module belongs here if it allocates or releases such addresses. What is reached there is the publisher's.
"""
