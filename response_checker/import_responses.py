"""Import responses from logs of inspect_ai, lm-evaluation-harness or promptfoo, or from a table.

    python import_responses.py --from=inspect --input logs/safe.eval --output_path=safe.csv
    python import_responses.py --from=jsonl --input=a.jsonl --model=gpt-5.4 \\
        --prompt_column=request.prompt --response_column=output.choices.0.message.content

Writes the CSV that stage 4 writes, with its run record; sends nothing. `measure.py --responses`,
check_response.py and plot_results.py take it from there (docs/your_logs.md). Each sample becomes a
row, or a row of {output stem}_failed.csv if it has no response; a line tells how many were left
out, and why.
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
import re
from argparse import Namespace
from pathlib import Path

from orbench.base.messages import shortened
from orbench.base.records import FAILED
from orbench.base.tables import Table, check_outputs, columns_in
from orbench.base.words import Row
from orbench.models.providers import Model
from orbench.models.requests import Missing, Request
from orbench.stages import flags
from orbench.stages.logs import Logged, Logs
from orbench.stages.responses import ResponseStage
from orbench.stages.run import Outcome, as_script
from orbench.stages.runner import run_stage
from orbench.stages.stage import Plan

LONGEST = 100  # characters of the settings that are shown


class ResponseImport(ResponseStage):
    """Stage 4, with responses that are there already."""

    def __init__(self, args: Namespace) -> None:
        logs = Logs(args)
        table = Table(args.input[0], columns_in(logs.rows, ["prompt"]), [*logs.rows])
        (((name, settings), place),) = logs.runs.items()
        tool = logs.form["tool"]
        version = logs.text(place, "version")
        id_ = re.sub(logs.form.get("provider", "^$"), "", name)
        model = Model(name, "", id_, "", "")
        super().__init__(args, table, model, Path("responses.csv"), shortened(settings, LONGEST))
        self.parameters = {"model": name, "logs": [path.name for path in args.input]}
        self.versions = {**self.versions, tool: version}
        self.under_test |= {
            "parameters": logs.value(place, "parameters") or {},
            "prompts": logs.text(place, "prompts") or table.path.stem,
            "start": logs.text(place, "start"),
            "end": logs.text(place, "end"),
        }
        self.notes = [f"imported from {tool} {version}".strip()]
        for what, n in logs.left_out.items():
            self.notes.append(f"left out: {what} ({n:,})")
        # Of the logs; a record beside the first one is of an earlier import.
        self.input_record = {"complete": {"", "success"}.issuperset(logs.status.values())}
        check_outputs([self.output, self.beside(FAILED)], args.input)

    def inquiries(self, row: Row) -> Plan:
        assert isinstance(row, Logged)
        if isinstance(row.answer, Missing):
            return row.answer
        return [self.read(Request(self.model, [], {}), row.answer)]


def run(args: Namespace) -> Outcome:
    """Import the responses. Raises UserError."""
    return run_stage(ResponseImport(args))


def parser() -> flags.Parser:
    parser = flags.Parser(
        __doc__, "import_responses", "output", "phrases", default="./responses.csv"
    )
    parser.set_defaults(
        prompts="",
        dry_run=False,
        from_log=None,
        export_requests=None,
        limit=None,
        substituted="unscored",
    )
    return parser


if __name__ == "__main__":
    as_script(run, parser)
