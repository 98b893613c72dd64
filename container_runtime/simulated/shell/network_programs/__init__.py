"""The programs of a simulated container that use the network: wget, curl, nc, nslookup, ping and those of databases.

A module belongs here if it behaves as such a program: its options, its messages, its exit codes, and how long it takes.
"""
