"""Self-organising maps with class-labelled cells; usable alone. `grid` and `schedules` import no torch."""
