"""placeholder"""
def init(file:str):
    """Look at a file of texts and labels and write a study for it."""
