"""How to read the pictures of representations, for page and Markdown."""

from __future__ import annotations

from matplotlib.colors import to_hex

from fairtune.report.maps.colours import class_colours
from fairtune.report.representation.section import ArmRepresentation, RepresentationSection

READING = (
    "Each picture is of one run’s own fine-tuned model, with the weights that were scored, and of no other: what its last linear "
    "layer is given for each test example, brought to a plane by t-SNE (principal components first, a fixed seed). "
    "Examples that lie close are alike to the model. Distances between clusters, their sizes and their shapes mean nothing; "
    "another seed of t-SNE would arrange them otherwise, and another seed of training is another model."
)


def representation_caption(arm: ArmRepresentation) -> str:
    """What one picture is of."""
    return (
        f"{arm.arm}, seed {arm.seed}, weights of step {arm.step:,}: {_examples(arm)} test examples, {arm.width:,} values each; "
        f"crosses are its {arm.mistakes:,} mistakes among them."
    )


def _examples(arm: ArmRepresentation) -> str:
    return f"{arm.examples:,}" if arm.examples == arm.kept else f"{arm.examples:,} of {arm.kept:,} kept"


def representation_remarks(section: RepresentationSection) -> list[str]:
    """Arms of which there is no picture."""
    told = [f"No picture of {arm}: {problem}." for arm, problem in section.problems.items()]
    if section.left_out:
        told.append(f"Kept but not drawn, to keep the page small: {', '.join(section.left_out)}.")
    return told


def class_key(labels: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each class with its colour."""
    return [(name, to_hex(colour)) for name, colour in zip(labels, class_colours(len(labels)), strict=True)]
