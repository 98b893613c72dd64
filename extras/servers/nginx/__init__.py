"""nginx: its configuration, and what a server answers with it. Pure.

A module belongs here if it reads a configuration of nginx, or answers a request by one.
"""
