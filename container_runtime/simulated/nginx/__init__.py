"""nginx: its configuration, and what a server answers with it. Pure: no I/O, no network, no files but those that a caller hands in.

A module belongs here if it reads a configuration or answers a request by one. The program in a container is in `shell`, connections
and logs are in `connections`.
"""
