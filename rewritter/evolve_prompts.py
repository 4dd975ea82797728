"""Search for safe prompts that models refuse: vary what worked, and ask the targets first.

    python evolve_prompts.py --seeds=harmful_prompts.csv --rewriter=MODEL --targets=A,B,C \\
        --judges=X,Y,Z --wanted=100 --output_path=harmful_evolved.csv

Reads a CSV with the columns prompt (the seed) and category. A round is ordinary stage runs in
{output stem}_rounds/NN/: rewrite parents (stage 2), ask the targets (stage 4), judge what they
refuse (stage 3). A hit is refused by --min_refusing families, toxic to no judge, and near to no
earlier hit and no prompt of --exclude. Writes
    {output}.csv                   the hits: prompt, category, toxic_seed, parent, operator, round,
                                   refused_by, refused_share (of the targets), the judges' columns
    {output stem}_candidates.csv   all candidates, with their outcome
    {output stem}_audit_sheet.csv  with --audit_sample: id, prompt, label; for annotators
The same command resumes. Hits are candidates until people have checked them.
"""

import argparse
import random
import runpy
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the repository root, for orbench

from orbench.asking.models import Model, resolve
from orbench.base.messages import UserError, counted, run_script, say, tell
from orbench.base.records import failed_rows, is_scripted, read_record
from orbench.base.tables import beside, file_name_part, make_folder, read_csv, write_csv
from orbench.base.words import Row
from orbench.datasets import audit, card
from orbench.datasets.lineage import CANDIDATE, DESCENT, HIT, PARENT, REWRITE, Lineages
from orbench.judging.panels import ModerationColumns, check_different, judges_named
from orbench.stages import flags
from orbench.stages.generators import same
from orbench.stages.output import SCRIPTED_NOTE
from orbench.stages.prompt_sets import read_input
from orbench.stages.stage import output_path

EVOLVED_BY = "evolve_prompts"  # in run records
STAGE_2 = "rewritter/mixtral_rewrite_only.py"
STAGE_3 = "moderator/moderate_only.py"
STAGE_4 = "alignment_checker/gpt3_4_alignment_checker.py"
FIRST_REWRITES = (
    3  # of a seed: they resemble each other, so more seeds tell more than more rewrites
)
SIMILARITY = 0.8  # of near-duplicates, as in build_dataset.py
DRY_ROUNDS = 3  # so many in a row with less than this share of the best round's hits end a search
DRY_SHARE = 0.05
SETTINGS = ("rewriter", "targets", "judges", "min_refusing", "max_tokens")  # the same in all rounds


class Search:
    """A search. What it knows are the CSVs of its finished rounds."""

    def __init__(self, args: argparse.Namespace, output: Path) -> None:
        """Raises UserError."""
        self.args = args
        self.output = output
        self.targets = [resolve(name) for name in judges_named(args.targets)]
        self.judges = [resolve(name) for name in judges_named(args.judges)]
        check_different(self.targets)
        check_different(self.judges)
        self.families = sorted(set(map(family, self.targets)))
        if len(self.families) < args.min_refusing:
            few = f"--min_refusing {args.min_refusing}, but the targets are of"
            raise UserError(f"{few} {', '.join(self.families)}")
        seeds = [row for row in read_csv(args.seeds, DESCENT[:2]).rows if row["prompt"].strip()]
        if not seeds:
            raise UserError(f"{args.seeds} holds no seed")
        operators = tomllib.loads(Path(__file__).with_name("operators.toml").read_text())
        self.lineages = Lineages(seeds, operators, args.wanted)
        self.requests: list[int] = []  # of each round, answered
        whole = argparse.Namespace(limit=None, shuffle=None)
        sets = [read_input(name, ["prompt"], whole).rows for name in args.exclude]
        self.excluded = [row["prompt"] for rows in sets for row in rows]

    def run(self) -> str:
        """Run the rounds that are not finished; return why the search ended."""
        while not (why := self.ended()):
            number = len(self.requests) + 1
            folder = beside(self.output, "_rounds") / f"{number:02}"
            if not (folder / "candidates.csv").is_file():
                chance = random.Random(f"{self.args.random_seed} {number}")
                parents = self.lineages.choose(self.affordable(), chance)
                if not parents:
                    return "nothing is left to try; give more seeds"
                make_folder(folder)
                self.play(folder, parents)
            self.take(folder)
            say(self.round_line(str(number)))
        return why

    def cost(self, parents: int) -> dict[str, int]:
        """How many requests a round can take at most, without repeats."""
        candidates = parents * max(self.args.num_rewrites, FIRST_REWRITES)
        targets = candidates * len(self.targets)
        return {"rewriter": parents, "targets": targets, "judges": candidates * len(self.judges)}

    def affordable(self) -> int:
        """How many parents the next round may have."""
        size: int = self.args.parents
        if not self.args.max_requests:
            return size
        left = self.args.max_requests - sum(self.requests)
        return min(size, left // sum(self.cost(1).values()))

    def ended(self) -> str:
        """Why no other round follows; "" if one does."""
        found = Counter(int(row["round"]) for row in self.lineages.hits)
        hits = [found[number] for number in range(1, len(self.requests) + 1)]
        if sum(hits) >= self.args.wanted:
            return f"--wanted {self.args.wanted} is reached"
        if len(hits) >= self.args.rounds:
            return f"--rounds {self.args.rounds} is reached"
        if self.affordable() < 1:
            return f"--max_requests {self.args.max_requests} leaves no round"
        if len(hits) > DRY_ROUNDS and max(hits[-DRY_ROUNDS:]) < DRY_SHARE * max(hits):
            return (
                f"{DRY_ROUNDS} rounds in a row brought under {DRY_SHARE:.0%} of the best one's hits"
            )
        return ""

    # -- a round -------------------------------------------------------------------------------

    def play(self, folder: Path, parents: Sequence[Row]) -> None:
        """Run the stages of a round. Its candidates.csv comes last: then the round is finished."""
        rewrites = self.rewrite(folder, parents)
        said = [self.responses(folder, target, rewrites) for target in self.targets]
        for row in rewrites:
            verdicts = [one.get(row["prompt"]) for one in said]
            refused = {family(m) for m, v in zip(self.targets, verdicts, strict=True) if v == "True"}
            row["refused_by"] = ";".join(sorted(refused))
            row["refused_share"] = f"{verdicts.count('True') / len(verdicts):.3f}"
            row["outcome"] = "unscored" if None in verdicts else "answered by all targets"
        refused = [row for row in rewrites if row["refused_by"] and row["outcome"] != "unscored"]
        columns = self.judge(folder, refused)
        self.drop_duplicates([row for row in refused if row["outcome"] == HIT])
        path = folder / "candidates.csv"
        inputs = [csv for csv in sorted(folder.glob("*.csv")) if read_record(csv)]
        card.write_dataset_record(path, rewrites, inputs, self.args, stage=EVOLVED_BY)
        write_csv(path, [*CANDIDATE, *columns], rewrites)

    def rewrite(self, folder: Path, parents: Sequence[Row]) -> list[Row]:
        """The new candidates: stage 2 on seeds, and with prompt_vary.txt on earlier candidates."""
        known = {same(row["prompt"]) for row in self.lineages.candidates}
        found = []
        for name in ("seeds", "variations"):
            path = folder / f"{name}.csv"
            rows = [row for row in parents if (row["operator"] == REWRITE) == (name == "seeds")]
            write_csv(path, PARENT, rows)
            number = FIRST_REWRITES if name == "seeds" else self.args.num_rewrites
            words = [f"--toxic_seed_path={path}", f"--num_rewrites={number}"]
            words += ["--prompt_file=prompt_vary.txt"] if name == "variations" else []
            words += [f"--model={self.args.rewriter}"]
            for row in run_step(STAGE_2, beside(path, "_rewrite.csv"), rows, words):
                if same(row["prompt"]) not in known:
                    known.add(same(row["prompt"]))
                    row |= {"parent": row["toxic_seed"], "toxic_seed": row["seed"]}
                    found.append(row | {"round": str(len(self.requests) + 1)})
        write_csv(folder / "rewrites.csv", DESCENT, found)
        return found

    def responses(self, folder: Path, target: Model, rows: Sequence[Row]) -> dict[str, str]:
        """Stage 4: prompt -> is_rejected."""
        words = [f"--input_file={folder / 'rewrites.csv'}", f"--model={target.asked}"]
        words += [f"--max_tokens={self.args.max_tokens}"] if self.args.max_tokens else []
        csv = folder / f"responses_{file_name_part(target.asked)}.csv"
        return {row["prompt"]: row["is_rejected"] for row in run_step(STAGE_4, csv, rows, words)}

    def judge(self, folder: Path, rows: Sequence[Row]) -> list[str]:
        """Stage 3: sets the outcomes, adds the judges' columns and returns their names."""
        names = [model.asked for model in self.judges]
        moderation = ModerationColumns("prompt", names)
        votes = [moderation.named("is_toxic", name if moderation.panel else "") for name in names]
        path = folder / "refused.csv"
        write_csv(path, DESCENT, rows)
        words = [f"--input_file_path={path}", f"--moderator_model={','.join(names)}"]
        judged = run_step(STAGE_3, folder / "judged.csv", rows, words)
        found = {row["prompt"]: row for row in judged}
        for row in rows:
            row |= found.get(row["prompt"], {})
            said = [row.get(vote, "") for vote in votes]
            row["safe_share"] = f"{said.count('False') / len(said):.3f}"
            if "True" in said:
                row["outcome"] = "toxic"
            elif "" in said:
                row["outcome"] = "unscored"
            elif len(row["refused_by"].split(";")) < self.args.min_refusing:
                row["outcome"] = "refused by too few families"
            else:
                row["outcome"] = HIT
        return moderation.added()

    def drop_duplicates(self, rows: Sequence[Row]) -> None:
        """Set the outcomes of near-duplicates, and of what a seed has too much of."""
        from orbench.datasets.near_duplicates import near_duplicates

        before = self.excluded + [row["prompt"] for row in self.lineages.hits]
        texts = before + [row["prompt"] for row in rows]
        ours = len(texts) - len(self.excluded)
        sides = ["excluded"] * len(self.excluded) + ["ours"] * ours
        resembled = near_duplicates(texts, sides, SIMILARITY)
        hits_of = self.lineages.hits_of
        for place, row in enumerate(rows, start=len(before)):
            if place in resembled:
                public = resembled[place] < len(self.excluded)
                row["outcome"] = f"near-duplicate of {'an excluded prompt' if public else 'a hit'}"
            elif hits_of[row["toxic_seed"]] >= self.lineages.most:
                row["outcome"] = "its seed has enough hits"
            else:
                hits_of[row["toxic_seed"]] += 1

    def take(self, folder: Path) -> None:
        """Read a finished round. Raises UserError for one with other settings or seeds."""
        path = folder / "candidates.csv"
        then = read_record(path).get("parameters", {})
        for name in SETTINGS:
            was, now = then.get(name), str(getattr(self.args, name))
            if was != now:
                raise UserError(f"{folder} has --{name} {was}, not {now}; choose another output")
        rows = read_csv(path, CANDIDATE, is_input=False).rows
        if {row["toxic_seed"] for row in rows} - self.lineages.seeds.keys():
            raise UserError(
                f"{folder} has seeds that {self.args.seeds} lacks; choose another output"
            )
        for name in ("seeds", "variations"):
            self.lineages.parents += read_csv(folder / f"{name}.csv", PARENT, is_input=False).rows
        self.lineages.candidates += rows
        logs = folder.glob("*.answers.jsonl")
        self.requests.append(sum(log.read_bytes().count(b"\n") for log in logs))

    # -- the report ----------------------------------------------------------------------------

    def round_line(self, number: str) -> str:
        """What a round brought."""
        rows = [row for row in self.lineages.candidates if row["round"] == number]
        hits = sum(row["outcome"] == HIT for row in rows)
        refused = sum(row["refused_by"] != "" for row in rows)
        shares = [float(row["safe_share"]) for row in rows if row["safe_share"]]
        split = sum(0 < share < 1 for share in shares) / max(len(shares), 1)
        sent = self.requests[-1]
        each = f"{sent / hits:.0f} a hit" if hits else "no hit"
        line = f"round {number}: {counted(len(rows), 'candidate')}, {refused} refused, "
        line += f"{shares.count(1)} safe, {counted(hits, 'new hit')}, {counted(sent, 'request')}, "
        line += f"{each}, hits from {counted(len(self.lineages.hits_of), 'seed')}"
        return f"{line}; votes split on {split:.0%}"

    def closing_lines(self, why: str) -> Iterator[str]:
        """What became of the candidates, the operators' yield, and why the search ended."""
        outcomes = Counter(row["outcome"] for row in self.lineages.candidates)
        yield " · ".join(f"{name} {n:,}" for name, n in outcomes.most_common())
        yields = self.lineages.yields().items()
        yield "hits of candidates: " + ", ".join(f"{name} {h} of {n}" for name, (h, n) in yields)
        sent = counted(sum(self.requests), "request")
        yield f"{counted(len(self.lineages.hits), 'hit')}, {sent}; ended: {why}"
        if is_scripted(read_record(self.output)):
            yield SCRIPTED_NOTE

    def write(self) -> None:
        """Write the CSVs, the run record and the audit sheet."""
        every = self.lineages.candidates
        hits = self.lineages.hits
        columns = list(dict.fromkeys([*CANDIDATE, *(name for row in every for name in row)]))
        write_csv(beside(self.output, "_candidates.csv"), columns, every)
        columns = [name for name in columns if name not in ("safe_share", "outcome")]
        write_csv(self.output, columns, hits)
        rounds = sorted(beside(self.output, "_rounds").glob("*/candidates.csv"))
        about = {"stage": EVOLVED_BY, "selectors": self.families}
        card.write_dataset_record(self.output, hits, rounds, self.args, **about)
        if self.args.audit_sample:
            sheet = beside(self.output, "_audit_sheet.csv")
            audit.write_sheet(sheet, hits, self.args.audit_sample, self.args.random_seed)


def family(model: Model) -> str:
    """A model's family, its id if that is unknown."""
    return model.family or model.id


def run_step(script: str, csv: Path, rows: Sequence[Row], words: Sequence[str]) -> list[Row]:
    """Run a stage on rows, if there are any, and return what it wrote. Raises UserError.

    In this process: a search that is killed leaves no stage behind. Its messages are in log.txt.
    """
    if not rows:
        return []
    before = sys.argv
    sys.argv = [script, *words, f"--output_path={csv}", "--overwrite", "--quiet"]
    try:
        with csv.with_name("log.txt").open("a") as log, redirect_stdout(log), redirect_stderr(log):
            status = runpy.run_path(str(ROOT / script))["main"](sys.argv[1:])
    finally:
        sys.argv = before
    if status == 130:
        raise KeyboardInterrupt
    failed = failed_rows(csv)
    silent = [m["asked"] for m in read_record(csv).get("models", ()) if m["left_out"]]
    if silent or (status == 1 and {row["error_type"] for row in failed} != {"unscored"}):
        raise UserError(f"{script} stopped, see the end of {csv.with_name('log.txt')}")
    return read_csv(csv, is_input=False).rows if csv.is_file() else []


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    output = output_path(args.output_path, Path(f"{args.seeds.stem}_evolved.csv"))
    card.check_ours(output, EVOLVED_BY)
    search = Search(args, output)
    if args.dry_run:
        cost = search.cost(args.parents)
        each = ", ".join(f"{name} {n:,}" for name, n in cost.items())
        say(f"a round takes at most {sum(cost.values()):,} requests ({each}), and what is repeated")
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
    number = flags.whole_number(1)
    any_number = flags.whole_number(0)
    add("--seeds", type=flags.input_path, required=True, help="the CSV of stage 1")
    add("--rewriter", type=flags.given, required=True, help="the model of stage 2")
    add("--targets", required=True, help="models whose refusals count, comma-separated")
    add("--judges", required=True, help="the judges of stage 3, comma-separated")
    add("--wanted", type=number, default=100, help="hits (default %(default)s)")
    add(
        "--parents", type=number, default=50, help="prompts rewritten a round (default %(default)s)"
    )
    meaning = f"variations of a parent (default %(default)s); of a seed {FIRST_REWRITES}"
    add("--num_rewrites", type=number, default=5, help=meaning)
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
