"""The files of a simulated container: those of every container, of its image, and of its volumes."""
