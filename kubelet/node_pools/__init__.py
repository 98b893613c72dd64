"""Pools of simulated nodes, the value of `--simulate-nodes`.

A module belongs here if it says what a pool is, or reads pools and reports what is wrong with them. Their nodes are made in
`kubelet/`.
"""
