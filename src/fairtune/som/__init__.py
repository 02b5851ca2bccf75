"""Self-organising maps with class-labelled cells; usable alone. `schedules` imports no torch; the grid is in `core.grid`."""
