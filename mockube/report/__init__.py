"""The report of a cluster in one file: as a page that opens offline, as Markdown, or as JSON.

A module belongs here if it collects, selects or writes what a report contains. Reports are made from what a server answers;
what `mockube why` says is asked of it, too.
"""
