"""Names that tell the results of a report apart, and what repeats another result."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from orbench.base.messages import UserError
from orbench.report.results import Result, named


def told_apart(results: Sequence[Result]) -> list[Result]:
    """Return the results with names that tell them apart, and with a note on what repeats another.

    Raises UserError for a result given twice.
    """
    found = list(results)
    ambiguous = _ambiguous(found, lambda one: (one.side, one.prompts), lambda one: one.prompt_set)
    for n, one in enumerate(found):
        if (one.side, one.prompts) in ambiguous:
            found[n] = replace(one, prompts=f"{one.prompts} {one.prompt_set[:8]}")
    ambiguous = _ambiguous(found, lambda one: one.judge, lambda one: one.template)
    for n, one in enumerate(found):
        judge = one.judge
        if judge in ambiguous:
            judge = f"{judge}, prompt {one.template[:8]}"
        found[n] = replace(one, judge=judge, judge_any_version=judge)
    ambiguous = _ambiguous(found, lambda one: one.judge, lambda one: one.judge_version)
    for n, one in enumerate(found):
        if one.judge in ambiguous:
            found[n] = replace(one, judge=f"{one.judge}, rules {one.judge_version}")
    _check_different(found)
    return _without_repeats(_with_short_names(found))


def _ambiguous(
    results: Sequence[Result], name: Callable[[Result], Hashable], what: Callable[[Result], str]
) -> set[Hashable]:
    """Return the names that stand for several things."""
    things = defaultdict[Hashable, set[str]](set)
    for result in results:
        things[name(result)].add(what(result))
    return {name for name, several in things.items() if len(several) > 1}


def _check_different(results: Sequence[Result]) -> None:
    """Raise UserError if two results are of the same model, settings, prompts and judge."""
    files = defaultdict[Hashable, list[str]](list)
    for one in results:
        who = (one.model, one.settings, one.side, one.prompt_set, one.judge)
        files[who].append(one.file)
    repeated = {file for several in files.values() if len(several) > 1 for file in several}
    if repeated:
        named_files = " and ".join(one.file for one in results if one.file in repeated)
        same = "the same model, prompts and judge; remove one, or rename it with MODEL=FILE"
        raise UserError(f"{named_files}: {same}")


def _with_short_names(results: Sequence[Result]) -> list[Result]:
    """Return the results, their models without provider and settings where these tell nothing."""

    def without_provider(one: Result) -> str:
        return one.model.rpartition("/")[2]

    ambiguous = _ambiguous(results, without_provider, lambda one: one.model)
    settings_differ = len({one.settings for one in results}) > 1
    found = []
    for one in results:
        short = without_provider(one)
        if short in ambiguous:
            short = one.model
        if settings_differ:
            short = named(short, one.settings)
        found.append(replace(one, short=short))
    return found


def _without_repeats(results: Sequence[Result]) -> list[Result]:
    """Return the results; what another model's result equals in some respect is not ranked."""
    first_copy: dict[Hashable, str] = {}
    first_model: dict[Hashable, str] = {}
    found = []
    for one in results:
        why = one.unranked
        if one.responses_hash and not one.is_baseline:
            first = first_copy.setdefault((one.side, one.responses_hash), one.label)
            if first != one.label:
                why = (f"the same responses as {first} throughout, a copy or an ignored setting",)
        if one.ids and not one.is_baseline:
            who = (one.settings, one.side, one.prompt_set, one.judge, one.ids)
            first = first_model.setdefault(who, one.label)
            if first != one.label:
                why = (f"the same model as {first}, by the returned ids",)
        found.append(replace(one, unranked=why))
    return found
