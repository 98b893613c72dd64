"""`mockube top`: what a cluster does now, in a terminal. What is read, what is made of it, and how a terminal shows it are apart.

A module belongs here if only this view needs it.
"""
