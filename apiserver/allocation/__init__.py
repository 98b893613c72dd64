"""Cluster IPs and node ports, which are allocated and released in the transaction that writes their Service.

A module belongs here if it decides which addresses and ports a Service gets, or stores the record of allocations.
The record is upstream's: an IPAddress object for each cluster IP, and one RangeAllocation with a bit for each node
port. Both are compared and changed in the transaction that writes the Service, so several servers over one store never
allocate anything twice, and nothing leaks when one of them dies.
"""
