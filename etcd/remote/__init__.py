"""A real etcd behind the contract.

A module belongs here if it turns the contract's calls into etcd's gateway protocol, or keeps a connection to it.
"""
