"""The controller that deletes pods which no other controller deletes.

A module belongs here if it finds or deletes such pods.
"""
