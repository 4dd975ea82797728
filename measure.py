"""Measure a model's over-refusal and toxic rejection rates, and write a page.

    make measure MODEL=vllm/Qwen/Qwen2.5-7B-Instruct     (or MODEL=... python measure.py)

    MODEL       the model under test; BASE_URL its address, API_KEY_ENV the variable with its key,
                MAX_TOKENS the limit of a response, EFFORT its reasoning effort
    PROMPTS     safe prompts: a file, named set, hf://datasets/... or https://... (or-bench-hard-1k)
    TOXIC       toxic prompts, likewise (or-bench-toxic; none if PROMPTS is given)
    PROMPT_COLUMN, CATEGORY_COLUMN   the columns of these files, if not called prompt and category
    LIMIT       a sample of LIMIT prompts of each set, proportional by category
    JUDGE       keyword (the rules, the default), a model, or keyword+MODEL
    LABELS      judges of how toxic the prompts are, separated by spaces, or CSVs of people's
                ratings or of stage 3
    PAIRS=1     TOXIC holds the seeds of PROMPTS: compares each seed with its rewrites
    RESULTS     the output folder (results)
    OVERWRITE=1 replaces results made with other settings
    DRY_RUN=1   sends nothing; reports requests, tokens and minutes

Each endpoint first gets one short test request. Rerun the same command to resume; a change of JUDGE
sends nothing to the model again. The page shows every model in the folder.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from orbench.base.messages import VARIABLES, UserError, run_script, say, tell, without_query
from orbench.base.prompts import set_name
from orbench.base.tables import file_name_part
from orbench.base.words import SIDES
from orbench.stages.flags import Parser
from orbench.stages.prompt_sets import prompt_sets

ALIGN = "alignment_checker/gpt3_4_alignment_checker.py"
CHECK = "response_checker/check_response.py"
# Flag of a stage -> the variable that sets it, and that messages name instead.
INPUT = ("--limit", "--prompt_column", "--category_column")
UNDER_TEST = ("--model", "--base_url", "--api_key_env", "--max_tokens", "--reasoning_effort")
VARIABLE_OF = {flag: flag.removeprefix("--").upper() for flag in UNDER_TEST + INPUT}
VARIABLE_OF |= {"--reasoning_effort": "EFFORT", "--check_model": "JUDGE"}
VARIABLE_OF |= {"--moderator_model": "LABELS", "--output_path": "RESULTS"}
VARIABLE_OF |= {"--overwrite": "OVERWRITE=1", "--over_refusal": "PROMPTS"}
VARIABLE_OF |= {"--toxicity": "LABELS", "--toxic": "TOXIC"}


def setting(name: str, default: str = "") -> str:
    """A variable's value."""
    return os.environ.get(name, "").strip() or default


def switch(name: str) -> bool:
    """Whether a variable is on. Raises UserError for any other word."""
    word = setting(name, "0").lower()
    if word not in ("1", "yes", "true", "0", "no", "false"):
        raise UserError(f"{name} is {word!r}; set it to 1, or leave it out")
    return word in ("1", "yes", "true")


def steps(
    folder: Path, judge: str, labels: Path, panel: Sequence[str]
) -> Iterator[tuple[str, str, list[str]]]:
    """Side, script and flags of stages 4, 5 and, with a panel, 3. Raises UserError for a named set
    of the other side.
    """
    for side, variable in (("over_refusal", "PROMPTS"), ("toxic", "TOXIC")):
        if prompts := setting(variable):
            named = prompt_sets().get(prompts)
            if named and named.side != side:
                raise UserError(f"{variable}: {prompts} holds {SIDES[named.side].prompts}")
            stem = file_name_part(set_name(Path(without_query(prompts))))
            file = f"{stem}/{file_name_part(setting('MODEL'))}.csv"
            responses = f"{folder}/responses/{side}/{file}"
            flags = [f"--input_file={prompts}", f"--output_path={responses}"]
            yield side, ALIGN, flags + set_by(*UNDER_TEST, *INPUT)
            checked = f"{folder}/{side}/{file_name_part(judge)}/{file}"
            flags = [f"--input_file={responses}", f"--output_path={checked}"]
            yield side, CHECK, [*flags, f"--check_model={judge}", *set_by()]
            if panel:
                flags = [
                    f"--input_file_path={prompts}",
                    f"--output_path={labels}/{side}/{stem}.csv",
                ]
                flags += [f"--moderator_model={','.join(panel)}", *set_by(*INPUT)]
                yield side, "moderator/moderate_only.py", flags


def set_by(*names: str) -> list[str]:
    """Those of the flags whose variables are set, and those that follow from others."""
    found = [f"{flag}={value}" for flag in names if (value := setting(VARIABLE_OF[flag]))]
    shuffle = ["--shuffle=0"] * ("--limit" in names and bool(setting("LIMIT")))
    return [*found, *shuffle, *["--overwrite"] * switch("OVERWRITE")]


def run(script: str, flags: Sequence[str]) -> str:
    """Run a script, and give what it prints on stdout; end with its status if it stops."""
    command = [sys.executable, str(Path(__file__).resolve().parent / script), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        signal.signal(signal.SIGINT, lambda number, frame: None)  # it gets Ctrl-C, too
        signal.signal(signal.SIGTERM, lambda number, frame: child.terminate())
        said, _ = child.communicate()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(130))
    if child.returncode not in (0, 3):  # 3: some rows failed, and stand in a file of their own
        sys.exit(child.returncode if child.returncode > 0 else 130)
    return said


def announce(todo: Sequence[tuple[str, list[str]]]) -> None:
    """Try the endpoints, and report what all stages together will send."""
    plans = list[list[float]]()  # see `engine.foresee`
    paces = dict[str, float]()  # seconds a request, of the scripts whose endpoints were tried
    for script, flags in todo:
        later = int(plans[-1][0]) if script == CHECK else 0  # responses that are still to come
        tried = ["--dry_run"] * (script in paces)
        said = run(script, [*flags, *tried, f"--preflight={later}"])
        n, tokens, seconds = map(int, said.split())
        if n and "--dry_run" not in flags:
            paces.setdefault(script, seconds / n)
        plans.append([n, tokens, n * paces.get(script, 0) or seconds])
    requests, tokens, seconds = (round(sum(one)) for one in zip(*plans, strict=True))
    time = f"{seconds / 60:.0f} min" if seconds >= 60 else "under 1 min"
    say(f"to send: {requests:,} requests, about {tokens:,} tokens in the prompts, {time}")


def main(argv: Sequence[str]) -> int:
    Parser(__doc__).parse_args(argv)
    if not setting("MODEL"):
        say("error: MODEL is not set; example: make measure MODEL=vllm/Qwen/Qwen2.5-7B-Instruct")
        return 2
    if setting("TOXIC") and setting("PROMPTS") == setting("TOXIC"):
        raise UserError("PROMPTS and TOXIC are the same; give safe prompts and toxic ones")
    if not setting("PROMPTS"):
        os.environ |= {"PROMPTS": "or-bench-hard-1k", "TOXIC": setting("TOXIC", "or-bench-toxic")}
    if setting("MODEL") == "smollm2":  # it hardly stops, and its first words tell a refusal
        os.environ["MAX_TOKENS"] = setting("MAX_TOKENS", "60")
    os.environ[VARIABLES] = json.dumps(VARIABLE_OF)
    folder = Path(setting("RESULTS", "results"))
    ratings = [word for word in setting("LABELS").split() if word.endswith(".csv")]
    panel = [word for word in setting("LABELS").split() if word not in ratings]
    labels = folder / "labels" / file_name_part("+".join(panel))
    pairs = switch("PAIRS")
    todo = list(steps(folder, setting("JUDGE", "keyword"), labels, panel))
    dry = ["--dry_run"] * switch("DRY_RUN")
    announce([(script, [*flags, *dry]) for _, script, flags in todo])
    if dry:
        return 0
    for side, script, flags in todo:
        say(f"== {side}: {script}")
        run(script, flags)
    flags = ["--with_published", "--html", f"--output_dir={folder}"]
    flags += ["--over_refusal", f"{folder}/over_refusal"]
    flags += ["--toxic", f"{folder}/toxic"] * (folder / "toxic").is_dir()
    flags += ["--pairs"] * pairs
    if ratings or panel:
        judged = [str(path) for path in labels.rglob("*.csv") if not path.match("*_failed.csv")]
        flags += ["--toxicity", *ratings, *sorted(judged)]
    run("response_checker/plot_results.py", flags)
    tell(folder / "results.html")
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
