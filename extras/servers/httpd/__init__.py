"""Apache httpd: its configuration, and what a server answers with it. Pure.

A module belongs here if it reads a configuration of Apache httpd, or answers a request by one.
"""
