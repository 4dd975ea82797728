"""Search for safe prompts that models refuse: vary what worked, and run the cheapest check first.

    python evolve_prompts.py --seeds=harmful_prompts.csv --rewriter=MODEL --targets=A,B,C \\
        --judges=X,Y,Z --wanted=100 --output_path=harmful_evolved.csv

Reads a CSV with the columns prompt (the seed) and category; docs/prompt_sets.md describes a round.
Writes at most --wanted hits (prompt, category, toxic_seed, parent, operator, round,
refusing_families, refused_share and the judges' columns); the others of the last round to
..._more.csv; and all rewrites with their outcome to ..._candidates.csv. With --confirm, other
models judge the hits and answer them; those that they contradict or leave unconfirmed go to
..._contradicted.csv. A rerun asks again about hits where a model of --confirm failed.
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
import random
from argparse import Namespace
from collections import Counter, defaultdict
from operator import itemgetter
from pathlib import Path

from orbench.base.messages import UserError, say
from orbench.base.near_duplicates import near_duplicates
from orbench.base.prompts import same
from orbench.base.records import add_to_record, failed_rows, is_scripted, read_record
from orbench.base.tables import beside, columns_in, file_name_part, make_folder, read_csv, write_csv
from orbench.base.toml_files import toml_beside
from orbench.base.words import Row, Rows, Words
from orbench.datasets import card
from orbench.datasets.lineage import (
    CANDIDATE,
    CONTRADICTED,
    DESCENT,
    HIT,
    PARENT,
    REWRITE,
    UNCONFIRMED,
    Lineages,
    hits_in,
)
from orbench.judging.panels import judges_named, models_of_search
from orbench.models.providers import resolve
from orbench.stages.closing import SCRIPTED_NOTE
from orbench.stages.flags import Parser
from orbench.stages.prompt_sets import prompts_of
from orbench.stages.run import Outcome, as_script, check_settings
from orbench.stages.run import run as run_stage
from orbench.stages.stage import output_path

EVOLVED_BY = "evolve_prompts"  # in run records
PROMPT_FILES = {"seeds": "prompt.txt", "variations": "prompt_vary.txt"}  # of stage 2
PER_PARENT = 5  # rewrites
# Kinds of failures that say nothing about a model.
OF_A_ROW = ("unscored", "not_english", "bad_request")
SIMILARITY = 0.8  # of near-duplicates, as in build_dataset.py
SETTINGS = (
    "seeds",
    "rewriter",
    "targets",
    "judges",
    "min_refusing",
    "max_tokens",
    "confirm",
    "new_category",
)
# What the models of --confirm make of a hit; any other outcome contradicts it.
CONFIRMED = {HIT: HIT, "unscored": UNCONFIRMED}


class Search(Lineages):
    """A search. What it knows is in the CSVs of its finished rounds."""

    def __init__(self, args: Namespace, output: Path) -> None:
        """Raises UserError."""
        seeds = read_csv(args.seeds, DESCENT[:2]).rows
        super().__init__(seeds, toml_beside(__file__, "operators.toml"), args.wanted)
        self.args = args
        self.output = output
        self.rounds = beside(output, "_rounds")
        card.check_ours(output, EVOLVED_BY)
        self.families = {}  # target -> family
        for target in map(resolve, judges_named(args.targets)):
            self.families[target.asked] = target.family or target.id
        if len(set(self.families.values())) < args.min_refusing:
            raise UserError(f"--targets come from fewer than {args.min_refusing} families")
        _, self.confirming = models_of_search(args)
        # Requests for a parent at most, repeats aside.
        judges = len(judges_named(args.judges))
        asked = len(self.families) + judges + 2 * len(self.confirming)
        self.cost = 1 + PER_PARENT * asked
        self.excluded = prompts_of(args.exclude)
        self.candidates: list[Row] = []
        self.refusing = defaultdict[str, list[str]](list)  # prompt -> targets
        self.brought: list[int] = []  # hits of each round
        self.requests = 0  # that were answered

    def run(self) -> str:
        """Run the rounds that are not finished. Return why the search ended."""
        make_folder(self.rounds)
        settings = {name: getattr(self.args, name) for name in SETTINGS}
        check_settings(self.rounds / "settings", settings, "--output_path")
        while not (why := self.ended()):
            number = str(len(self.brought) + 1)
            folder = self.rounds / number.zfill(2)
            if not (folder / "candidates.csv").is_file():
                chance = random.Random(f"{self.args.random_seed} {number}")
                parents = self.choose(self.size(), chance)
                if not parents:
                    return "nothing is left to try; give more seeds"
                make_folder(folder)
                play(self, folder, parents)
            say(f"round {number}: {self.take(folder)}")
        return why

    def size(self) -> int:
        """Return how many parents the next round may have."""
        left = self.args.max_requests - self.requests
        return int(min(self.args.parents, left // self.cost))

    def ended(self) -> str:
        """Return why no other round follows, "" if one does."""
        args = self.args
        brought = self.brought
        if sum(brought) >= args.wanted:
            return f"--wanted {args.wanted} was reached"
        if len(brought) >= args.rounds:
            return f"--rounds {args.rounds} was reached"
        if self.size() < 1:
            return f"--max_requests {args.max_requests} was reached"
        if len(brought) > 3 and max(brought[-3:]) < max(brought) / 20:
            return "three consecutive rounds stayed below 5 % of the best round's hits"
        return ""

    def take(self, folder: Path) -> str:
        """Read a finished round, and say what it brought. Raises UserError."""
        for name in PROMPT_FILES:
            self.parents += read_csv(folder / f"{name}.csv", PARENT).rows
        candidates = read_csv(folder / "candidates.csv", CANDIDATE).rows
        self.candidates += candidates
        hits = hits_in(candidates)
        self.hits += hits
        if self.confirming:  # in a finished round, too: what failed is asked again
            confirm(self, folder, hits)
        new = len(hits_in(hits))
        self.brought.append(new)
        logs = folder.glob("*.answers.jsonl")
        requests = sum(log.read_bytes().count(b"\n") for log in logs)
        self.requests += requests
        return (
            f"{len(candidates)} candidates, {new} new hits, {requests} requests, "
            f"hits from {len(self.hits_of())} seeds"
        )

    def write(self) -> None:
        """Write the CSVs, and the run record of the main one."""
        columns = columns_in(self.candidates, CANDIDATE)
        write_csv(beside(self.output, "_candidates.csv"), columns, self.candidates)
        others = hits_in(self.hits, CONTRADICTED, UNCONFIRMED)
        write_csv(beside(self.output, "_contradicted.csv"), columns, others)
        columns.remove("outcome")
        hits = hits_in(self.hits)
        wanted = hits[: self.args.wanted]
        write_csv(beside(self.output, "_more.csv"), columns, hits[len(wanted) :])
        inputs = sorted(self.rounds.glob("*/*_done.csv"))
        families = [*self.families.values()]
        families += [model.family or model.id for model in self.confirming]
        card.write_dataset(self.output, columns, wanted, inputs, self.args, EVOLVED_BY, families)
        if self.confirming:
            outcomes = Counter(map(itemgetter("outcome"), self.hits))
            add_to_record(self.output, "confirmed", **outcomes)


def play(search: Search, folder: Path, parents: Rows) -> None:
    """Run the stages of a round. Its candidates.csv comes last: then it is finished."""
    rows = rewrite_parents(search, folder, parents)
    number = len(search.families)
    for n, target in enumerate(search.families):
        ask_target(search, folder / "rewrites", target, rows[n::number])
    ask_judges(search, folder / "refused.csv", hits_in(rows), search.args.judges)
    for target in search.families:
        others = [row for row in hits_in(rows) if target not in search.refusing[row["prompt"]]]
        ask_target(search, folder / "safe", target, others)
    for row in rows:
        targets = search.refusing[row["prompt"]]
        families = {search.families[target] for target in targets}
        row["refusing_families"] = ";".join(sorted(families))
        row["refused_share"] = f"{len(targets) / number:.3f}"
        if row["outcome"] == HIT and len(families) < search.args.min_refusing:
            row["outcome"] = "refused by too few families"
    drop_duplicates(search, hits_in(rows))
    write_csv(folder / "candidates.csv", columns_in(rows, CANDIDATE), rows)


def rewrite_parents(search: Search, folder: Path, parents: Rows) -> Rows:
    """Run stage 2, and return the candidates that are new."""
    known = {same(row["prompt"]) for row in search.candidates}
    number = str(len(search.brought) + 1)
    candidates = []
    for name, prompt_file in PROMPT_FILES.items():
        path = folder / f"{name}.csv"
        rows = [row for row in parents if (row["operator"] == REWRITE) is (name == "seeds")]
        rewrites = run_step(
            "rewritter/mixtral_rewrite_only.py",
            path,
            rows,
            PARENT,
            model=search.args.rewriter,
            prompt_file=prompt_file,
            num_rewrites=PER_PARENT,
        )
        for prompt, row in rewrites.items():
            if same(prompt) not in known:
                known.add(same(prompt))
                candidates.append(
                    {
                        "prompt": prompt,
                        "category": row["category"],
                        "toxic_seed": row["seed"],
                        "parent": row["toxic_seed"],
                        "operator": row["operator"],
                        "round": number,
                        "outcome": "answered",
                    }
                )
    return candidates


def ask_target(search: Search, stem: Path, target: str, rows: Rows) -> None:
    """Run stage 4: what a target refuses may be a hit. No response: unscored."""
    path = Path(f"{stem}_{file_name_part(target)}.csv")
    responses = run_step(
        "alignment_checker/gpt3_4_alignment_checker.py",
        path,
        rows,
        model=target,
        max_tokens=search.args.max_tokens,
    )
    for row in rows:
        prompt = row["prompt"]
        if prompt not in responses:
            row["outcome"] = "unscored"
        elif responses[prompt]["is_rejected"] == "True":
            row["outcome"] = HIT
            search.refusing[prompt].append(target)


def ask_judges(search: Search, path: Path, rows: Rows, judges: str) -> None:
    """Run stage 3. A vote that is missing leaves a row without a verdict."""
    verdicts = run_step(
        "moderator/moderate_only.py",
        path,
        rows,
        moderator_model=judges,
        min_votes=len(judges_named(judges)),
        new_category=search.args.new_category,
    )
    for row in rows:
        row |= verdicts.get(row["prompt"], {"outcome": "unscored"})
        if "True" in (row.get("is_toxic"), row.get("debatable")):
            row["outcome"] = "toxic"


def confirm(search: Search, folder: Path, hits: Rows) -> None:
    """Ask the models of --confirm about hits: a hit is confirmed if it would be one with them,
    refused by one and called toxic by none.
    """
    rows = [hit | {"outcome": "answered"} for hit in hits]
    for model in search.confirming:
        ask_target(search, folder / "confirm", model.asked, hits_in(rows, "answered", "unscored"))
    ask_judges(search, folder / "confirm.csv", hits_in(rows), search.args.confirm)
    for hit, row in zip(hits, rows, strict=True):
        hit["outcome"] = CONFIRMED.get(row["outcome"], CONTRADICTED)


def drop_duplicates(search: Search, rows: Rows) -> None:
    """Drop hits that nearly equal others, and those of a seed that has enough."""
    hits = [row["prompt"] for row in [*search.hits, *rows]]
    resembled = near_duplicates({"excluded": search.excluded, "hits": hits}, SIMILARITY)
    hits_of = search.hits_of()
    for row in rows:
        seed = row["toxic_seed"]
        if earlier := resembled.get(row["prompt"]):
            row["outcome"] = f"near-duplicate in {earlier.side}"
        elif hits_of[seed] >= search.most:
            row["outcome"] = "its seed has enough hits"
        else:
            hits_of[seed] += 1


def run_step(
    script: str, path: Path, rows: Rows, columns: Words = DESCENT, **flags: object
) -> dict[str, Row]:
    """Write rows to a CSV, and return what a stage makes of it, by prompt. Raises UserError."""
    write_csv(path, columns, rows)
    if not rows:
        return {}
    csv = beside(path, "_done.csv")
    flags = flags | {"input_file": path, "output_path": csv, "overwrite": True, "quiet": True}
    log = path.with_name("log.txt")
    with log.open("a") as file:
        outcome = run_stage(script, flags, file)
    causes = [outcome.stopped]
    causes += [model["left_out"] for model in read_record(csv).get("models", ())]
    if outcome.status == 1:
        causes += [row["error"] for row in failed_rows(csv) if row["error_type"] not in OF_A_ROW]
    if cause := next(filter(None, causes), ""):
        raise UserError(f"{script} stopped: {cause}; all it said is in {log}")
    if not csv.is_file():
        return {}
    return {row["prompt"]: row for row in read_csv(csv).rows}


def run(args: Namespace) -> Outcome:
    output = output_path(args.output_path, Path(f"{args.seeds.stem}_evolved.csv"))
    search = Search(args, output)
    if args.dry_run:
        say(f"a round takes at most {search.cost * args.parents:,} requests, not counting repeats")
        return Outcome(0)
    make_folder(output.parent)
    why = search.run()
    search.write()
    outcomes = Counter(map(itemgetter("outcome"), search.candidates))
    ends = [f"{name} {n:,}" for name, n in outcomes.most_common()]
    say(f"candidates: {', '.join(ends)}")
    say(f"{search.requests:,} requests; ended because {why}")
    if is_scripted(read_record(output)):
        say(SCRIPTED_NOTE)
    return Outcome(0, output)


def parser() -> Parser:
    return Parser(
        __doc__,
        "evolve_prompts",
        "confirm",
        "new_category",
        "output",
        default="./{seeds stem}_evolved.csv",
    )


if __name__ == "__main__":
    as_script(run, parser)
