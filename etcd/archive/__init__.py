"""A store in one file that can be carried elsewhere. A module belongs here if it knows the file's format, writes it or reads it."""
