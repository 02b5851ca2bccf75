"""Models: where they come from, loading them, what is in them.

What planning a study needs (`sources`, `presets`, `tokenizers`, `capability`, `folder_safety`) imports no torch.
"""
