"""The images that simulated containers know.

A module belongs here if it says what is in an image: what runs by default, files, ports, user, logs.
"""
