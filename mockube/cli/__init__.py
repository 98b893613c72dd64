"""The command `mockube`. A file belongs here if it parses arguments or prints results; other packages do the work."""
