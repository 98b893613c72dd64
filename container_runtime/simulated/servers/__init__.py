"""The servers in simulated containers: on which ports they listen, and what they answer to a path or to a probe. Pure.

A module belongs here if it answers from specifications, images and files; who connects, and how, belongs to `connections`.
"""
