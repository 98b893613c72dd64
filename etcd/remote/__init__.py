"""A real etcd as a KV.

A module belongs here if it translates the contract's calls into etcd's gateway protocol, or keeps a connection to
etcd.
"""
