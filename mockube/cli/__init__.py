"""The command `mockube`. A file belongs here if it reads arguments, or prints what a command answers; what is done lies elsewhere."""
