"""The pictures of a report: each is drawn once, for the page and for files."""
