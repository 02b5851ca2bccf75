"""Pictures of what fine-tuned models make of test examples, as a section of the report."""
