"""Names that tell the results of a report apart, and what repeats another result."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from orbench.base.messages import UserError
from orbench.report.results import Result, named

# Why a result is not ranked.
COPY = "the same responses as {} throughout, a copy or an ignored setting"
SAME_MODEL = "the same model as {}, by the returned ids"


def with_distinct_names(results: Sequence[Result]) -> list[Result]:
    """Return the results with numbers, with names that tell them apart, and with a note on what
    repeats another. Raises UserError for a result given twice.
    """
    sets = _ambiguous(((one.side, one.prompts), one.prompt_set) for one in results)
    judges = _ambiguous((one.judge, one.template) for one in results)
    models = _ambiguous((_without_provider(one), one.model) for one in results)
    settings_differ = len({one.settings for one in results}) > 1
    found = []
    for number, one in enumerate(results):
        prompts = one.prompts
        if (one.side, prompts) in sets:
            prompts += f" {one.prompt_set[:8]}"
        judge = one.judge
        if judge in judges:
            judge += f", prompt {one.template[:8]}"
        short = _without_provider(one)
        if short in models:
            short = one.model
        if settings_differ:
            short = named(short, one.settings)
        one = replace(one, number=number, short=short, prompts=prompts)
        found.append(replace(one, judge=judge, judge_any_version=judge))
    judges = _ambiguous((one.judge, one.judge_version) for one in found)
    for number, one in enumerate(found):
        if one.judge in judges:
            found[number] = replace(one, judge=f"{one.judge}, rules {one.judge_version}")
    _check_different(found)
    return list(_without_repeats(found))


def _ambiguous(meanings: Iterable[tuple[Hashable, str]]) -> set[Hashable]:
    """Return the names that stand for several things. meanings: names with what they stand for."""
    things = Counter(name for name, _ in set(meanings))
    return {name for name, count in things.items() if count > 1}


def _without_provider(result: Result) -> str:
    return result.model.rpartition("/")[2]


def _check_different(results: Sequence[Result]) -> None:
    """Raise UserError if two results are of the same model, settings, prompts and judge."""
    files = defaultdict[Hashable, list[str]](list)
    for one in results:
        files[one.model, one.settings, one.side, one.prompt_set, one.judge].append(one.file)
    for several in files.values():
        if len(several) > 1:
            same = "the same model, prompts and judge; remove one, or rename it with MODEL=FILE"
            raise UserError(f"{' and '.join(several)}: {same}")


def _without_repeats(results: Sequence[Result]) -> Iterator[Result]:
    """Yield the results; what another model's result equals in some respect is not ranked."""
    first = dict[Hashable, str]()
    for one in results:
        model = one.settings, one.side, one.prompt_set, one.judge, one.ids
        why = one.unranked
        for key, text in (((one.side, one.responses_hash), COPY), (model, SAME_MODEL)):
            if key[-1] and not one.is_baseline:  # else nothing is known of it
                label = first.setdefault(key, one.label)
                if label != one.label:
                    why = (text.format(label),)
        yield replace(one, unranked=why)
