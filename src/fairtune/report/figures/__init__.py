"""What figures of all sections share: a canvas, axes, colours."""
