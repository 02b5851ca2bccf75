"""Reports of a study as HTML, Markdown, JSON and a terminal table, all from one content read off the ledger."""
