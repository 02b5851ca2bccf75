"""Everything that a user may write, as typed data and nothing else. Imports only `core`."""
