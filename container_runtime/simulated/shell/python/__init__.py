"""Python in simulated containers: a tree-walking interpreter with a value model and limits of its own; nothing of the host is in reach."""
