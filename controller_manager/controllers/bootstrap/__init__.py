"""The controllers of bootstrap tokens, by which nodes join: signing with them, and their deletion.

A module belongs here if it reads the Secrets of these tokens.
"""
