"""Services of type LoadBalancer and the addresses that they are reached by from outside.

A module belongs here if it gives such addresses or takes them back. Nothing is reachable by them.
"""
