"""What only a server does with expressions: estimates their cost before it accepts them, and gives them custom objects as values.

A module belongs here if it does not depend on requests or on kinds. The engine is `mockube.apimachinery.cel`.
"""
