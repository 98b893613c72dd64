"""The garbage collector: what has lost its owners goes, and what is to outlive them is let go."""
