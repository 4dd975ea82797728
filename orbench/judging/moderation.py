"""The columns of stage 3: one judge's, or a panel's majority with each judge's own."""

from collections.abc import Sequence

from orbench.asking.models import Model
from orbench.asking.requests import Missing
from orbench.base.messages import UserError
from orbench.base.tables import file_name_part, storable
from orbench.base.words import Row
from orbench.judging.kinds import Opinion
from orbench.judging.panels import majority, panel_votes

PARTS = ("is_toxic", "moderation_category", "moderation_result")


class ModerationColumns:
    """Names and fills the columns that stage 3 adds."""

    def __init__(
        self, column: str, judges: Sequence[str], substitute: str = "", *, doubts: bool = False
    ) -> None:
        """column: what is judged. substitute: stands in for a missing vote. doubts: a single judge
        can call a text debatable.
        """
        self._prefix = "" if column == "prompt" else f"{column}_"
        self.judges, self._every = judges, [*judges, *([substitute] if substitute else [])]
        self.panel = len(self._every) > 1
        self._doubts = doubts or self.panel

    def named(self, name: str, judge: str = "") -> str:
        """A column's name: `is_toxic`, `response_is_toxic`, `is_toxic_gpt4`."""
        return f"{self._prefix}{name}" + (f"_{file_name_part(judge)}" if judge else "")

    def added(self) -> list[str]:
        """The columns, in order."""
        doubts = [self.named("debatable")] if self._doubts else []
        if not self.panel:
            return [*map(self.named, PARTS), *doubts]
        each = [self.named(part, judge) for judge in self._every for part in PARTS]
        return [*map(self.named, PARTS[:2]), self.named("votes"), *doubts, *each]

    def cells(self, readings: Sequence[Opinion | Missing], min_votes: int) -> Row | Missing:
        """The cells of one text, or why it has no verdict. readings: one per judge, in order."""
        decided = majority(panel_votes(readings), min_votes)
        pairs = list(zip(self.judges, readings, strict=True))
        if decided.toxic is None:
            whys = [f"{judge}: {one.why}" for judge, one in pairs if isinstance(one, Missing)]
            return Missing("unscored", "; ".join([decided.why, *whys] if self.panel else whys))
        opinions = {one.judge: one for one in readings if isinstance(one, Opinion)}
        debatable = decided.split or any(one.debatable for one in opinions.values())
        found = {
            self.named("is_toxic"): str(decided.toxic),
            self.named("moderation_category"): decided.category,
            self.named("votes"): str(decided.votes),
            self.named("debatable"): str(debatable),
        }
        for judge, one in pairs:
            if isinstance(one, Missing):  # what it said instead of a verdict
                found[self.named("moderation_result", judge)] = storable(one.said)
        for judge, opinion in opinions.items():
            values = (str(opinion.toxic), opinion.verdict, opinion.reply)
            names = (self.named(part, judge if self.panel else "") for part in PARTS)
            found |= dict(zip(names, values, strict=True))
        return found

    def votes(self, row: Row) -> list[bool | None]:
        """Each judge's vote in an output row: True is toxic, None missing."""
        words = {"True": True, "False": False}
        return [words.get(row.get(self.named("is_toxic", judge), "")) for judge in self.judges]


def judges_named(text: str) -> list[str]:
    """The judges of `--moderator_model=a,b,c`. Raises UserError for none."""
    judges = [name.strip() for name in text.split(",") if name.strip()]
    if not judges:
        raise UserError("--moderator_model names no judge")
    return judges


def check_different(models: Sequence[Model]) -> None:
    """Raise UserError if two judges are the same model, or would share their columns."""
    known: dict[object, str] = {}
    for model in models:
        for same in ((model.address, model.id), file_name_part(model.asked)):
            if other := known.get(same):
                message = f"{other!r} and {model.asked!r} are the same judge; each has one vote"
                raise UserError(message)
            known[same] = model.asked
