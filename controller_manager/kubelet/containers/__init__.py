"""What a simulated container contains: its environment, its files, and what it has logged at a time.

What belongs here follows from a pod, from the objects that it refers to, and from the time; it uses no connection.
"""
