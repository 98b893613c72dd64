"""The simulated run-time: programs that are functions over simulated files, streams and connections.

A module belongs here if it is a part of a simulated container, or of the network between them. What is known of a container before it
runs is in `predictions`, so that one costs nothing while it runs; `runtime` runs the others in real time.
"""
