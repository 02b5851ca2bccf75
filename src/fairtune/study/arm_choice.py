"""Some arms of a plan, chosen by name: the plan stays whole, so that neither its hash nor its family of comparisons shrinks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.study.plan import Plan


def read_arms(option: str | None) -> list[str] | None:
    """The names in `--arms a,b`; None where it was not given."""
    found = None if option is None else [name.strip() for name in option.split(",") if name.strip()]
    if found == []:
        raise FairtuneError("--arms: it names no arm; give some of the study's, such as --arms baseline,focal.")
    return found


def require_arms(names: Collection[str], arms: Collection[str]) -> None:
    """Refuse a name that is none of the study's arms."""
    for name in names:
        if name not in arms:
            known = f"its arms: {one_of(arms)}.{nearest(name, list(arms))}"
            raise FairtuneError(f"--arms: the study has no arm '{name}'; {known}")


def choose_arms(plan: Plan, names: Sequence[str] | None) -> list[str]:
    """The arms that are named, in the plan's order, with those that they are compared with; all of them where none are.

    Raises:
        FairtuneError: there is no such arm.
    """
    if not names:
        return list(plan.study.arms)
    require_arms(names, plan.study.arms)
    partners = {other for arm in names for other in (plan.primaries[arm], plan.matched.get(arm))}
    return [arm for arm in plan.study.arms if arm in {*names, plan.study.compare.to, *partners}]


def choice_text(plan: Plan, chosen: Sequence[str]) -> str | None:
    """What to say where only some arms are meant; None where all are."""
    others = [arm for arm in plan.study.arms if arm not in chosen]
    if not others:
        return None
    return (
        f"{len(chosen)} of {len(plan.study.arms)} arms: {one_of(chosen)}. The plan stays whole: its hash and the comparisons that "
        f"are corrected together are those of all arms, and {one_of(others)} can be run later."
    )
