"""Servers that read a configuration from the files of their container: each has a folder, and `contract` is what they share. Pure.

A module belongs here if it reads a configuration or answers a request by one: no I/O, no network, no files but those that a caller hands in.
The program that starts such a server is in `shell/network_programs/servers`, connections and logs are in `connections`.
"""
