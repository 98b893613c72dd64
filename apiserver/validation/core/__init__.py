"""The kinds of the core group that neither run pods nor carry their traffic.

A module belongs here if it holds the rules of a few of them. Pods and volumes have packages of their own.
"""
