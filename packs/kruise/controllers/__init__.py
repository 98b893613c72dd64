"""The controllers of OpenKruise.

A folder belongs here if it is a controller of openkruise/kruise. Code that several share is in the folder of the pack.
"""
