"""Moderated prompts into datasets: joining, selection, quality, audit, card; the hard subset."""
