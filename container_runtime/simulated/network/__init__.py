"""The calls by which simulated programs use the network, and their open sockets.

A module belongs here if it says what a program asks of the network, or gets from it. Where a call leads is decided by the rules in `mockube.network`.
"""
