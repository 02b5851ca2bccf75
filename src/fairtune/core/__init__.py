"""The floor: errors, safe files and folders, locks, the cache, seeding, number formats. Imports nothing of fairtune's."""
