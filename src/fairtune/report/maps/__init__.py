"""Pictures of self-organising maps, and the report's section about them."""
