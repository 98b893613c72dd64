"""A store in one file.

A module belongs here if it defines the file's format, writes it or reads it.
"""
