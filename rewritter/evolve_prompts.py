"""Search for safe prompts that models refuse: vary what worked, and run the cheapest check first.

    python evolve_prompts.py --seeds=harmful_prompts.csv --rewriter=MODEL --targets=A,B,C \\
        --judges=X,Y,Z --wanted=100 --output_path=harmful_evolved.csv

Reads a CSV with the columns prompt (the seed) and category; docs/datasets.md describes a round.
Writes the hits (prompt, category, toxic_seed, parent, operator, round, refused_by, refused_share
and the judges' columns) and ..._candidates.csv, all rewrites with their outcome.
"""

import argparse
import random
import runpy
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.asking.models import resolve
from orbench.base.messages import UserError, run_script, say, tell
from orbench.base.records import failed_rows, is_scripted, read_record
from orbench.base.tables import beside, file_name_part, make_folder, read_csv, write_csv
from orbench.base.words import Row
from orbench.datasets import audit, card
from orbench.datasets.lineage import CANDIDATE, DESCENT, HIT, PARENT, REWRITE, Lineages, columns_of
from orbench.judging.panels import judges_named
from orbench.stages import flags
from orbench.stages.generators import same
from orbench.stages.output import SCRIPTED_NOTE
from orbench.stages.prompt_sets import prompts_of
from orbench.stages.stage import output_path

EVOLVED_BY = "evolve_prompts"  # in run records
PROMPT_FILES = {"seeds": "prompt.txt", "variations": "prompt_vary.txt"}  # of stage 2
PER_PARENT = 5  # rewrites
SIMILARITY = 0.8  # of near-duplicates, as in build_dataset.py
SETTINGS = ("seeds", "rewriter", "targets", "judges", "min_refusing", "max_tokens")


class Search:
    """A search. What it knows is in the CSVs of its finished rounds."""

    def __init__(self, args: argparse.Namespace, output: Path) -> None:
        """Raises UserError."""
        self.args = args
        self.output = output
        targets = [resolve(name) for name in judges_named(args.targets)]
        judges = [resolve(name) for name in judges_named(args.judges)]
        self.families = {model.asked: model.family or model.id for model in targets}
        self.judges = len(judges)
        if len(set(self.families.values())) < args.min_refusing:
            raise UserError(f"--targets come from fewer than {args.min_refusing} families")
        seeds = read_csv(args.seeds, DESCENT[:2]).rows
        operators = Path(__file__).with_name("operators.toml").read_text()
        self.lineages = Lineages(seeds, tomllib.loads(operators), args.wanted)
        self.excluded = prompts_of(args.exclude)
        self.requests: list[int] = []  # answered ones, of each round
        # Requests for a parent at most, repeats aside.
        self.cost = 1 + PER_PARENT * (len(targets) + len(judges))

    def run(self) -> str:
        """Run the rounds that are not finished. Returns why the search ended."""
        while not (why := self.ended()):
            number = str(len(self.requests) + 1)
            folder = beside(self.output, "_rounds") / number.zfill(2)
            if not (folder / "candidates.csv").is_file():
                chance = random.Random(f"{self.args.random_seed} {number}")
                parents = self.lineages.choose(self.size(), chance)
                if not parents:
                    return "nothing is left to try; give more seeds"
                make_folder(folder)
                play(self, folder, parents)
            self.take(folder)
            say(f"round {number}: {self.lineages.round_line(number, self.requests[-1])}")
        return why

    def size(self) -> int:
        """How many parents the next round may have."""
        left = self.args.max_requests - sum(self.requests)
        return int(min(self.args.parents, left // self.cost))

    def ended(self) -> str:
        """Why no other round follows; "" if one does."""
        found = Counter(row["round"] for row in self.lineages.hits)
        hits = [found[str(n + 1)] for n in range(len(self.requests))]
        if sum(hits) >= self.args.wanted:
            return f"--wanted {self.args.wanted} was reached"
        if len(hits) >= self.args.rounds:
            return f"--rounds {self.args.rounds} was reached"
        if self.size() < 1:
            return f"--max_requests {self.args.max_requests} was reached"
        if len(hits) > 3 and max(hits[-3:]) < max(hits) / 20:
            return "three rounds in a row yielded less than a twentieth of the best one"
        return ""

    def take(self, folder: Path) -> None:
        """Read a finished round. Raises UserError for one with other settings."""
        path = folder / "candidates.csv"
        before = read_record(path).get("parameters", {})
        for name in SETTINGS:
            if before.get(name) != str(getattr(self.args, name)):
                was = f"--{name} {before.get(name)}"
                raise UserError(f"{folder} has {was}; use that, or another --output_path")
        for name in PROMPT_FILES:
            self.lineages.parents += read_csv(folder / f"{name}.csv", PARENT, is_input=False).rows
        self.lineages.candidates += read_csv(path, CANDIDATE, is_input=False).rows
        logs = folder.glob("*.answers.jsonl")
        self.requests.append(sum(log.read_bytes().count(b"\n") for log in logs))

    def write(self) -> None:
        """Write the CSVs, the run record and the audit sheet."""
        hits = self.lineages.hits
        columns = columns_of(self.lineages.candidates)
        write_csv(beside(self.output, "_candidates.csv"), columns, self.lineages.candidates)
        write_csv(self.output, [name for name in columns if name != "outcome"], hits)
        rounds = beside(self.output, "_rounds").glob("*/candidates.csv")
        card.write_dataset_record(self.output, hits, sorted(rounds), self.args, stage=EVOLVED_BY)
        if size := self.args.audit_sample:
            audit.write_sheets(beside(self.output, "_audit_sheet.csv"), hits, size)


def play(search: Search, folder: Path, parents: Sequence[Row]) -> None:
    """Run the stages of a round. Its candidates.csv comes last: then it is finished."""
    rows = rewrite_parents(search, folder, parents)
    refusing = defaultdict[str, list[str]](list)  # prompt -> targets
    number = len(search.families)
    for n, target in enumerate(search.families):
        ask_target(search, folder / "rewrites", target, rows[n::number], refusing)
    for row in hits_in(rows):
        if not refusing[row["prompt"]]:
            row["outcome"] = "answered"
    ask_judges(search, folder, hits_in(rows))
    for target in search.families:
        others = [row for row in hits_in(rows) if target not in refusing[row["prompt"]]]
        ask_target(search, folder / "safe", target, others, refusing)
    for row in rows:
        families = {search.families[target] for target in refusing[row["prompt"]]}
        row["refused_by"] = ";".join(sorted(families))
        row["refused_share"] = f"{len(refusing[row['prompt']]) / number:.3f}"
        if row["outcome"] == HIT and len(families) < search.args.min_refusing:
            row["outcome"] = "refused by too few families"
    drop_duplicates(search, hits_in(rows))
    path = folder / "candidates.csv"
    inputs = [csv for csv in folder.glob("*.csv") if read_record(csv)]
    about = {"stage": EVOLVED_BY, "selectors": sorted(set(search.families.values()))}
    card.write_dataset_record(path, rows, inputs, search.args, **about)
    write_csv(path, columns_of(rows), rows)


def hits_in(rows: Sequence[Row]) -> list[Row]:
    """The rows that nothing speaks against so far."""
    return [row for row in rows if row["outcome"] == HIT]


def rewrite_parents(search: Search, folder: Path, parents: Sequence[Row]) -> list[Row]:
    """Stage 2. Gives the candidates that are new."""
    known = {same(row["prompt"]) for row in search.lineages.candidates}
    about = {"round": str(len(search.requests) + 1), "outcome": HIT}
    found = []
    for name, prompt_file in PROMPT_FILES.items():
        path = folder / f"{name}.csv"
        rows = [row for row in parents if (row["operator"] == REWRITE) is (name == "seeds")]
        flags = {"toxic_seed_path": path, "model": search.args.rewriter}
        flags |= {"prompt_file": prompt_file, "num_rewrites": PER_PARENT}
        for row in run_step("rewritter/mixtral_rewrite_only.py", path, PARENT, rows, flags):
            if same(row["prompt"]) not in known:
                known.add(same(row["prompt"]))
                descent = {"toxic_seed": row["seed"], "parent": row["toxic_seed"]}
                cells = {name: row[name] for name in ("prompt", "category", "operator")}
                found.append(cells | descent | about)
    return found


def ask_target(
    search: Search, stem: Path, target: str, rows: Sequence[Row], refusing: dict[str, list[str]]
) -> None:
    """Stage 4: note what a target refuses. No response: unscored."""
    path = stem.with_name(f"{stem.name}_{file_name_part(target)}.csv")
    flags = {"input_file": path, "model": target, "max_tokens": search.args.max_tokens}
    found = run_step("alignment_checker/gpt3_4_alignment_checker.py", path, DESCENT, rows, flags)
    rejected = {row["prompt"]: row["is_rejected"] == "True" for row in found}
    for row in rows:
        if row["prompt"] not in rejected:
            row["outcome"] = "unscored"
        elif rejected[row["prompt"]]:
            refusing[row["prompt"]].append(target)


def ask_judges(search: Search, folder: Path, rows: Sequence[Row]) -> None:
    """Stage 3. A vote that is missing leaves a row without a verdict."""
    path = folder / "refused.csv"
    flags = {"input_file_path": path, "moderator_model": search.args.judges}
    flags |= {"min_votes": search.judges}
    judged = run_step("moderator/moderate_only.py", path, DESCENT, rows, flags)
    found = {row["prompt"]: row for row in judged}
    for row in rows:
        row |= found.get(row["prompt"], {"outcome": "unscored"})
        if "True" in (row.get("is_toxic"), row.get("debatable")):
            row["outcome"] = "toxic"


def drop_duplicates(search: Search, rows: Sequence[Row]) -> None:
    """Drop hits that nearly equal others, and those of a seed that has enough."""
    from orbench.datasets.near_duplicates import near_duplicates

    before = search.excluded + [row["prompt"] for row in search.lineages.hits]
    texts = before + [row["prompt"] for row in rows]
    sides = ["excluded" if n < len(search.excluded) else "hits" for n in range(len(texts))]
    resembled = near_duplicates(texts, sides, SIMILARITY)
    hits_of = search.lineages.hits_of()
    for place, row in enumerate(rows, start=len(before)):
        if place in resembled:
            row["outcome"] = f"near-duplicate in {sides[resembled[place]]}"
        elif hits_of[row["toxic_seed"]] >= search.lineages.most:
            row["outcome"] = "its seed has enough hits"
        else:
            hits_of[row["toxic_seed"]] += 1


def run_step(
    script: str, path: Path, columns: Sequence[str], rows: Sequence[Row], flags: dict[str, Any]
) -> list[Row]:
    """Write rows to a CSV, and return what a stage makes of it. Raises UserError.

    In this process, so a killed search leaves no stage behind.
    """
    write_csv(path, columns, rows)
    if not rows:
        return []
    csv = beside(path, "_done.csv")
    words = [f"--{name}={value}" for name, value in flags.items() if value]
    words += [f"--output_path={csv}", "--overwrite", "--quiet"]
    stage = runpy.run_path(str(Path(__file__).resolve().parents[1] / script))
    with path.with_name("log.txt").open("a") as log, redirect_stdout(log), redirect_stderr(log):
        status = stage["main"](words)
    if status == 130:
        raise KeyboardInterrupt
    left_out = any(model["left_out"] for model in read_record(csv).get("models", ()))
    faults = {row["error_type"] for row in failed_rows(csv)} - {"unscored", "bad_request"}
    if left_out or (status == 1 and faults):
        raise UserError(f"{script} stopped; see the end of {path.with_name('log.txt')}")
    return read_csv(csv, is_input=False).rows if csv.is_file() else []


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    output = output_path(args.output_path, Path(f"{args.seeds.stem}_evolved.csv"))
    card.check_ours(output, EVOLVED_BY)
    search = Search(args, output)
    if args.dry_run:
        say(f"a round takes at most {search.cost * args.parents:,} requests, not counting repeats")
        return 0
    make_folder(output.parent)
    why = search.run()
    search.write()
    say(search.lineages.closing_line())
    say(f"{sum(search.requests):,} requests; ended because {why}")
    if is_scripted(read_record(output)):
        say(SCRIPTED_NOTE)
    tell(output)
    return 0


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    add = parser.add_argument
    number = flags.whole_number(1)
    add("--seeds", type=flags.input_path, required=True, help="the CSV of stage 1")
    add("--rewriter", type=flags.given, required=True, help="the model of stage 2")
    add("--targets", required=True, help="models whose refusals count, comma-separated")
    add("--judges", required=True, help="the judges of stage 3, comma-separated")
    add("--wanted", type=number, default=100, help="hits to find (default %(default)s)")
    add("--parents", type=number, default=50, help="parents per round (default %(default)s)")
    meaning = "families of targets that must refuse a hit (default %(default)s)"
    add("--min_refusing", type=number, default=1, help=meaning)
    add("--rounds", type=number, default=30, help="maximum number (default %(default)s)")
    add("--max_requests", type=number, default=100_000, help="maximum number (default %(default)s)")
    meaning = "CSVs or named sets: near-duplicates of their prompts are not hits"
    add("--exclude", nargs="+", default=[], metavar="FILE", help=meaning)
    add("--max_tokens", type=number, help="limit of a target's answer (default: that of stage 4)")
    add("--random_seed", type=int, default=0, help="random seed (default %(default)s)")
    meaning = "write a sheet of N random hits to label toxic or safe"
    add("--audit_sample", type=number, default=0, metavar="N", help=meaning)
    add("--dry_run", action="store_true", help="send nothing; report a round's maximum requests")
    flags.add_output_flags(parser, "./{seeds stem}_evolved.csv")
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
