"""What is known of container images: which exist, and what runs in them by default, their programs, files, ports, user and logs.

A module belongs here if it answers from an image's name alone; what becomes of it in a container belongs to the run-time.
"""
