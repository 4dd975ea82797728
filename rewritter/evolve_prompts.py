"""Search for safe prompts that models refuse: vary what worked, and ask the targets first.

    python evolve_prompts.py --seeds=harmful_prompts.csv --rewriter=MODEL --targets=A,B,C \\
        --judges=X,Y,Z --wanted=100 --output_path=harmful_evolved.csv

Reads a CSV with the columns prompt (the seed) and category. A round is ordinary stage runs in
{output stem}_rounds/NN/: rewrite parents (stage 2), ask the targets (stage 4), judge what they
refuse (stage 3). A hit is refused by --min_refusing families, toxic to no judge, and nearly equals
no earlier hit and no prompt of --exclude. Writes the hits: prompt, category, toxic_seed, parent,
operator, round, refused_by (families), refused_share (of the targets), the judges' columns; and
..._candidates.csv, all candidates with their outcome; with --audit_sample ..._audit_sheet.csv (id,
prompt, label) for annotators: hits are candidates until people have checked them.
"""

import argparse
import random
import runpy
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from itertools import compress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.asking.models import resolve
from orbench.base.messages import UserError, run_script, say, tell
from orbench.base.records import failed_rows, is_scripted, read_record
from orbench.base.tables import beside, file_name_part, make_folder, read_csv, write_csv
from orbench.base.words import Row
from orbench.datasets import audit, card
from orbench.datasets.lineage import CANDIDATE, DESCENT, HIT, PARENT, REWRITE, Lineages
from orbench.judging.panels import ModerationColumns, check_different, judges_named
from orbench.stages import flags
from orbench.stages.generators import same
from orbench.stages.output import SCRIPTED_NOTE
from orbench.stages.prompt_sets import prompts_of
from orbench.stages.stage import output_path

EVOLVED_BY = "evolve_prompts"  # in run records
STAGE_2 = "rewritter/mixtral_rewrite_only.py"
STAGE_3 = "moderator/moderate_only.py"
STAGE_4 = "alignment_checker/gpt3_4_alignment_checker.py"
# Rewrites of a parent. Those of a seed resemble each other: fewer of more seeds tell more.
NUMBERS = {"seeds": 3, "variations": 5}
SIMILARITY = 0.8  # of near-duplicates, as in build_dataset.py
DRY_ROUNDS = 3  # in a row, each with less than this share of the best round's hits, end a search
DRY_SHARE = 0.05
SETTINGS = ("seeds", "rewriter", "targets", "judges", "min_refusing", "max_tokens")


class Search:
    """A search. What it knows is in the CSVs of its finished rounds."""

    def __init__(self, args: argparse.Namespace, output: Path) -> None:
        """Raises UserError."""
        self.args = args
        self.output = output
        self.targets = [resolve(name) for name in judges_named(args.targets)]
        self.judges = [resolve(name) for name in judges_named(args.judges)]
        check_different(self.targets)
        check_different(self.judges)
        self.families = sorted({one.family or one.id for one in self.targets})
        if len(self.families) < args.min_refusing:
            raise UserError(f"--targets are of {len(self.families)} families: {self.families}")
        seeds = [row for row in read_csv(args.seeds, DESCENT[:2]).rows if row["prompt"].strip()]
        if not seeds:
            raise UserError(f"{args.seeds} holds no seed")
        operators = tomllib.loads(Path(__file__).with_name("operators.toml").read_text())
        self.lineages = Lineages(seeds, operators, args.wanted)
        self.requests: list[int] = []  # answered ones, of each round
        self.excluded = prompts_of(args.exclude)
        # What a parent costs at most, repeats aside.
        each = max(NUMBERS.values())
        judges = each * len(self.judges)
        self.cost = {"rewriter": 1, "targets": each * len(self.targets), "judges": judges}

    def run(self) -> str:
        """Run the rounds that are not finished. Returns why the search ended."""
        while not (why := self.ended()):
            number = len(self.requests) + 1
            folder = beside(self.output, "_rounds") / f"{number:02}"
            if not (folder / "candidates.csv").is_file():
                chance = random.Random(f"{self.args.random_seed} {number}")
                parents = self.lineages.choose(self.size(), chance)
                if not parents:
                    return "nothing is left to try; give more seeds"
                make_folder(folder)
                self.play(folder, parents)
            self.take(folder)
            say(self.round_line(str(number)))
        return why

    def size(self) -> int:
        """How many parents the next round may have."""
        size: int = self.args.parents
        left = self.args.max_requests - sum(self.requests)
        return min(size, left // sum(self.cost.values())) if self.args.max_requests else size

    def ended(self) -> str:
        """Why no other round follows; "" if one does."""
        found = Counter(row["round"] for row in self.lineages.hits)
        hits = [found[str(number)] for number, _ in enumerate(self.requests, start=1)]
        if sum(hits) >= self.args.wanted:
            return f"--wanted {self.args.wanted} is reached"
        if len(hits) >= self.args.rounds:
            return f"--rounds {self.args.rounds} is reached"
        if self.size() < 1:
            return f"--max_requests {self.args.max_requests} is reached"
        if len(hits) > DRY_ROUNDS and max(hits[-DRY_ROUNDS:]) < DRY_SHARE * max(hits):
            return f"{DRY_ROUNDS} rounds in a row brought under {DRY_SHARE:.0%} of the best one"
        return ""

    def play(self, folder: Path, parents: Sequence[Row]) -> None:
        """Run the stages of a round. Its candidates.csv comes last: then it is finished."""
        rows = self.rewrite(folder, parents)
        self.ask(folder, rows)
        columns = self.judge(folder, [row for row in rows if row["outcome"] == HIT])
        self.drop_duplicates([row for row in rows if row["outcome"] == HIT])
        path = folder / "candidates.csv"
        inputs = [csv for csv in sorted(folder.glob("*.csv")) if read_record(csv)]
        about = {"stage": EVOLVED_BY, "selectors": self.families}
        card.write_dataset_record(path, rows, inputs, self.args, **about)
        write_csv(path, [*CANDIDATE, *columns], rows)

    def rewrite(self, folder: Path, parents: Sequence[Row]) -> list[Row]:
        """Stage 2, with prompt_vary.txt for all but seeds: the candidates that are new."""
        known = {same(row["prompt"]) for row in self.lineages.candidates}
        found = []
        for name, number in NUMBERS.items():
            path = folder / f"{name}.csv"
            rows = [row for row in parents if (row["operator"] == REWRITE) == (name == "seeds")]
            write_csv(path, PARENT, rows)
            flags = {"toxic_seed_path": path, "model": self.args.rewriter, "num_rewrites": number}
            flags |= {"prompt_file": "prompt_vary.txt"} if name == "variations" else {}
            for row in run_step(STAGE_2, beside(path, "_rewrite.csv"), rows, flags):
                if same(row["prompt"]) not in known:
                    known.add(same(row["prompt"]))
                    descent = {"toxic_seed": row["seed"], "parent": row["toxic_seed"]}
                    found.append(row | descent | {"round": str(len(self.requests) + 1)})
        return found

    def ask(self, folder: Path, rows: Sequence[Row]) -> None:
        """Stage 4: who refuses. What anybody refuses goes to the judges as a HIT."""
        path = folder / "rewrites.csv"
        write_csv(path, DESCENT, rows)
        said = []
        for target in self.targets:
            csv = folder / f"responses_{file_name_part(target.asked)}.csv"
            flags = {"input_file": path, "model": target.asked, "max_tokens": self.args.max_tokens}
            found = run_step(STAGE_4, csv, rows, flags)
            said.append({row["prompt"]: row["is_rejected"] for row in found})
        for row in rows:
            verdicts = [one.get(row["prompt"], "") for one in said]
            refusing = compress(self.targets, (verdict == "True" for verdict in verdicts))
            row["refused_by"] = ";".join(sorted({one.family or one.id for one in refusing}))
            row["refused_share"] = f"{verdicts.count('True') / len(verdicts):.3f}"
            row["outcome"] = "unscored" if "" in verdicts else "answered"
            if row["refused_by"] and "" not in verdicts:
                row["outcome"] = HIT

    def judge(self, folder: Path, rows: Sequence[Row]) -> list[str]:
        """Stage 3: adds the judges' columns, whose names it returns."""
        names = [judge.asked for judge in self.judges]
        columns = ModerationColumns("prompt", names)
        each = [columns.named("is_toxic", name if columns.panel else "") for name in names]
        path = folder / "refused.csv"
        write_csv(path, DESCENT, rows)
        flags = {"input_file_path": path, "moderator_model": ",".join(names)}
        found = {r["prompt"]: r for r in run_step(STAGE_3, folder / "judged.csv", rows, flags)}
        for row in rows:
            row |= found.get(row["prompt"], {})
            votes = [row.get(name, "") for name in each]
            row["safe_share"] = f"{votes.count('False') / len(votes):.3f}"
            if "True" in votes:
                row["outcome"] = "toxic"
            elif "" in votes:
                row["outcome"] = "unscored"
            elif len(row["refused_by"].split(";")) < self.args.min_refusing:
                row["outcome"] = "refused by too few families"
        return columns.added()

    def drop_duplicates(self, rows: Sequence[Row]) -> None:
        """Find near-duplicates among the hits of a round, and what a seed has too much of."""
        from orbench.datasets.near_duplicates import near_duplicates

        before = self.excluded + [row["prompt"] for row in self.lineages.hits]
        texts = before + [row["prompt"] for row in rows]
        sides = ["excluded" if n < len(self.excluded) else "hits" for n in range(len(texts))]
        resembled = near_duplicates(texts, sides, SIMILARITY)
        hits_of = self.lineages.hits_of()
        for place, row in enumerate(rows, start=len(before)):
            hits_of[row["toxic_seed"]] += place not in resembled
            if place in resembled:
                row["outcome"] = f"near-duplicate in {sides[resembled[place]]}"
            elif hits_of[row["toxic_seed"]] > self.lineages.most:
                row["outcome"] = "its seed has enough hits"

    def take(self, folder: Path) -> None:
        """Read a finished round. Raises UserError for one with other settings or seeds."""
        path = folder / "candidates.csv"
        then = read_record(path).get("parameters", {})
        for name in SETTINGS:
            if then.get(name) != str(getattr(self.args, name)):
                was = f"{folder} was made with --{name} {then.get(name)}"
                raise UserError(f"{was}; give that, or another --output_path")
        for name in NUMBERS:
            self.lineages.parents += read_csv(folder / f"{name}.csv", PARENT, is_input=False).rows
        self.lineages.candidates += read_csv(path, CANDIDATE, is_input=False).rows
        logs = folder.glob("*.answers.jsonl")
        self.requests.append(sum(log.read_bytes().count(b"\n") for log in logs))

    def round_line(self, number: str) -> str:
        """What a round brought."""
        rows = [row for row in self.lineages.candidates if row["round"] == number]
        hits = sum(row["outcome"] == HIT for row in rows)
        shares = [float(row["safe_share"]) for row in rows if row["safe_share"]]
        split = sum(0 < share < 1 for share in shares) / max(len(shares), 1)
        refused = sum(row["refused_by"] != "" for row in rows)
        line = f"round {number}: {len(rows)} candidates, {refused} refused, {shares.count(1)} safe"
        each = f"{self.requests[-1] / hits:.0f} a hit" if hits else "no hit"
        line += f", {hits} new hits, {self.requests[-1]} requests ({each}), hits from "
        return line + f"{len(self.lineages.hits_of())} seeds, judges split on {split:.0%}"

    def closing_lines(self, why: str) -> Iterator[str]:
        """What became of the candidates, the operators' yield, and why the search ended."""
        outcomes = Counter(row["outcome"] for row in self.lineages.candidates)
        yield "candidates: " + " · ".join(f"{name} {n:,}" for name, n in outcomes.most_common())
        yields = self.lineages.yields().items()
        yield "hits of candidates: " + " · ".join(f"{name} {h} of {n}" for name, (h, n) in yields)
        yield f"{len(self.lineages.hits)} hits, {sum(self.requests):,} requests; ended as {why}"
        if is_scripted(read_record(self.output)):
            yield SCRIPTED_NOTE

    def write(self) -> None:
        """Write the CSVs, the run record and the audit sheet."""
        every, hits = self.lineages.candidates, self.lineages.hits
        columns = list(dict.fromkeys([*CANDIDATE, *(name for row in every for name in row)]))
        write_csv(beside(self.output, "_candidates.csv"), columns, every)
        write_csv(self.output, [n for n in columns if n not in ("safe_share", "outcome")], hits)
        rounds = sorted(beside(self.output, "_rounds").glob("*/candidates.csv"))
        card.write_dataset_record(self.output, hits, rounds, self.args, stage=EVOLVED_BY)
        if n := self.args.audit_sample:
            audit.write_sheet(beside(self.output, "_audit_sheet.csv"), hits, n, seed=0)


def run_step(script: str, csv: Path, rows: Sequence[Row], flags: dict[str, Any]) -> list[Row]:
    """Run a stage on rows, if there are any, and return what it wrote. Raises UserError.

    In this process, so a killed search leaves no stage behind. Its messages are in log.txt.
    """
    if not rows:
        return []
    words = [f"--{name}={value}" for name, value in flags.items() if value]
    words += [f"--output_path={csv}", "--overwrite", "--quiet"]
    stage = runpy.run_path(str(Path(__file__).resolve().parents[1] / script))
    with csv.with_name("log.txt").open("a") as log, redirect_stdout(log), redirect_stderr(log):
        status = stage["main"](words)
    if status == 130:
        raise KeyboardInterrupt
    left_out = any(model["left_out"] for model in read_record(csv).get("models", ()))
    faults = {row["error_type"] for row in failed_rows(csv)} - {"unscored", "bad_request"}
    if left_out or (status == 1 and faults):
        raise UserError(f"{script} stopped, see the end of {csv.with_name('log.txt')}")
    return read_csv(csv, is_input=False).rows if csv.is_file() else []


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    output = output_path(args.output_path, Path(f"{args.seeds.stem}_evolved.csv"))
    card.check_ours(output, EVOLVED_BY)
    search = Search(args, output)
    if args.dry_run:
        most = {name: n * args.parents for name, n in search.cost.items()}
        each = ", ".join(f"{name} {n:,}" for name, n in most.items())
        say(f"requests of a round at most, repeats aside: {sum(most.values()):,} ({each})")
        return 0
    make_folder(output.parent)
    why = search.run()
    search.write()
    for line in search.closing_lines(why):
        say(line)
    tell(output)
    return 0


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    add = parser.add_argument
    number, any_number = flags.whole_number(1), flags.whole_number(0)
    add("--seeds", type=flags.input_path, required=True, help="the CSV of stage 1")
    add("--rewriter", type=flags.given, required=True, help="the model of stage 2")
    add("--targets", required=True, help="models whose refusals count, comma-separated")
    add("--judges", required=True, help="the judges of stage 3, comma-separated")
    add("--wanted", type=number, default=100, help="hits (default %(default)s)")
    add("--parents", type=number, default=50, help="of a round (default %(default)s)")
    meaning = "families of targets that must refuse a hit (default %(default)s)"
    add("--min_refusing", type=number, default=1, help=meaning)
    add("--rounds", type=number, default=30, help="at most (default %(default)s)")
    add("--max_requests", type=any_number, default=0, help="at most (default: no limit)")
    meaning = "CSVs or named sets: near-duplicates of their prompts are no hits"
    add("--exclude", nargs="+", default=[], metavar="FILE", help=meaning)
    add("--max_tokens", type=number, help="limit of a target's answer (default: that of stage 4)")
    add("--random_seed", type=any_number, default=0, help="of the choices (default %(default)s)")
    meaning = "write a sheet of N random hits to label, toxic or safe"
    add("--audit_sample", type=any_number, default=0, metavar="N", help=meaning)
    add("--dry_run", action="store_true", help="send nothing; report the most a round can cost")
    flags.add_output_flags(parser, "./{seeds stem}_evolved.csv")
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
