"""Measure a model: from its name to its over-refusal and toxic rejection rates, and a page.

    make measure MODEL=vllm/Qwen/Qwen2.5-7B-Instruct     (or MODEL=... python measure.py)

    MODEL       the model under test
    BASE_URL, API_KEY_ENV, MAX_TOKENS, EFFORT
                its address, the variable with its key, the limit of a response, reasoning effort
    PROMPTS     safe prompts: a file, named set, hf://datasets/... or https://... (or-bench-hard-1k)
    TOXIC       toxic prompts likewise (or-bench-toxic; if PROMPTS is given: none)
    PROMPT_COLUMN, CATEGORY_COLUMN   the columns of these files, if not called prompt and category
    LIMIT       a sample of LIMIT prompts of each set, proportional by category
    JUDGE       keyword (the rules, the default), a model, or keyword+MODEL
    LABELS      judges of how toxic the prompts are, separated by blanks, or people's ratings.csv
    RESULTS     the folder of everything (results)
    OVERWRITE=1 replaces results that were made with other settings
    DRY_RUN=1   sends nothing; reports requests, tokens and minutes

First, each endpoint that is needed gets one request of a few tokens. Run the same command again to
resume; another JUDGE asks the model nothing again. The page shows every model in the folder.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from orbench.base.messages import VARIABLES, run_script, say, tell, without_query
from orbench.base.tables import file_name_part
from orbench.stages.flags import Parser
from orbench.stages.prompt_sets import prompt_sets

ALIGN = "alignment_checker/gpt3_4_alignment_checker.py"
CHECK = "response_checker/check_response.py"
# Flag of a stage -> the variable that sets it.
UNDER_TEST = {
    "--model": "MODEL",
    "--base_url": "BASE_URL",
    "--api_key_env": "API_KEY_ENV",
    "--max_tokens": "MAX_TOKENS",
    "--reasoning_effort": "EFFORT",
}
COLUMNS = {"--prompt_column": "PROMPT_COLUMN", "--category_column": "CATEGORY_COLUMN"}
LIMIT = {"--limit": "LIMIT"}
OTHER_WORDS = {"--output_path": "RESULTS", "--overwrite": "OVERWRITE=1"}
OTHER_WORDS |= {"--base_url": "its provider's ..._BASE_URL"}  # of judges

Step = tuple[str, list[str], dict[str, str]]  # script, flags, flag -> what messages call it


def setting(name: str, default: str = "") -> str:
    """A variable's value."""
    return os.environ.get(name, "").strip() or default


def steps(folder: Path, judge: str, labels: Path, panel: Sequence[str]) -> Iterator[Step]:
    """Stages 4, 5 and, with a panel, 3, on each side."""
    common = ["--overwrite"] * (setting("OVERWRITE") == "1")
    for side, variable in (("over_refusal", "PROMPTS"), ("toxic", "TOXIC")):
        prompts = setting(variable)
        if not prompts:
            continue
        columns = LIMIT if prompts in prompt_sets() else LIMIT | COLUMNS
        stem = file_name_part(Path(without_query(prompts)).stem)
        file = f"{stem}/{file_name_part(setting('MODEL'))}.csv"
        responses = f"{folder}/responses/{side}/{file}"
        names = {"--input_file": variable} | UNDER_TEST | columns
        yield ALIGN, [*common, *set_by(names), f"--output_path={responses}"], names
        checked = f"{folder}/{side}/{file_name_part(judge)}/{file}"
        flags = [f"--input_file={responses}", f"--output_path={checked}", f"--check_model={judge}"]
        yield CHECK, common + flags, {"--check_model": "JUDGE"}
        if panel:
            names = {"--input_file_path": variable} | columns
            flags = [f"--output_path={labels}/{stem}.csv", f"--moderator_model={','.join(panel)}"]
            flags += set_by(names)
            names |= {"--moderator_model": "LABELS"}
            yield "moderator/moderate_only.py", common + flags, names


def set_by(names: Mapping[str, str]) -> list[str]:
    """The flags whose variables are set."""
    found = [f"{flag}={value}" for flag, name in names.items() if (value := setting(name))]
    return found + ["--shuffle=0"] * bool(setting("LIMIT"))


def run(script: str, flags: Sequence[str], names: Mapping[str, str]) -> str:
    """Run a script, and give what it prints on stdout; end with its status if it stops."""
    os.environ[VARIABLES] = json.dumps({**OTHER_WORDS, **names})
    command = [sys.executable, str(Path(__file__).resolve().parent / script), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        signal.signal(signal.SIGINT, lambda number, frame: None)  # it gets Ctrl-C, too
        said, _ = child.communicate()
    if child.returncode not in (0, 3):  # 3: some rows failed, and stand in a file of their own
        sys.exit(child.returncode)
    return said


def preflight(todo: Sequence[Step]) -> None:
    """Report what is to come, after a request to each endpoint, see `engine.foresee`."""
    plans = list[list[int]]()
    for script, flags, names in todo:
        later = plans[-1][0] if script == CHECK else 0  # responses that are still to come
        dry = ["--dry_run"] * (setting("DRY_RUN") == "1")
        said = run(script, [*flags, *dry, f"--preflight={later}"], names)
        plans.append([int(number) for number in said.split()])
    to_send, tokens, seconds = map(sum, zip(*plans, strict=True))
    say(
        f"to send: {to_send:,} requests, about {tokens:,} tokens of prompts, {seconds / 60:.0f} min"
    )


def main(argv: Sequence[str]) -> int:
    Parser(__doc__).parse_args(argv)
    if not setting("MODEL"):
        say("error: which model? For example: make measure MODEL=vllm/Qwen/Qwen2.5-7B-Instruct")
        return 2
    if not setting("PROMPTS"):
        os.environ |= {"PROMPTS": "or-bench-hard-1k", "TOXIC": setting("TOXIC", "or-bench-toxic")}
    if setting("MODEL") == "smollm2":  # it hardly stops, and its first words tell a refusal
        os.environ["MAX_TOKENS"] = setting("MAX_TOKENS", "60")
    folder = Path(setting("RESULTS", "results"))
    ratings = [word for word in setting("LABELS").split() if word.endswith(".csv")]
    panel = [word for word in setting("LABELS").split() if word not in ratings]
    labels = folder / "labels" / file_name_part("+".join(panel))
    todo = list(steps(folder, setting("JUDGE", "keyword"), labels, panel))
    preflight(todo)
    if setting("DRY_RUN") == "1":
        return 0
    for script, flags, names in todo:
        say(f"== {script}")
        run(script, flags, names)
    flags = ["--with_published", "--html", f"--output_dir={folder}"]
    flags += ["--over_refusal", f"{folder}/over_refusal"]
    if (folder / "toxic").is_dir():
        flags += ["--toxic", f"{folder}/toxic"]
    if ratings or panel:
        judged = [str(path) for path in labels.glob("*.csv") if not path.match("*_failed.csv")]
        flags += ["--toxicity", *ratings, *sorted(judged)]
    run("response_checker/plot_results.py", flags, {"--output_dir": "RESULTS"})
    tell(folder / "results.html")
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
