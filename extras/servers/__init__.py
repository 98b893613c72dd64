"""Servers that read a configuration from the files of their container.

A module belongs here if it is the program of such a server, reads its configuration, or answers a request by one. `kinds` lists the servers;
connections, logs and the requests that a server sends to others are those of `container_runtime.simulated`.
"""
