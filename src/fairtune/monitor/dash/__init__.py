"""The live view in the browser: read from the ledger, served on this machine alone unless asked."""
