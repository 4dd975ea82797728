"""Measure a model: from its name to its over-refusal and toxic rejection rates, and a page.

    make measure MODEL=vllm/Qwen/Qwen2.5-7B-Instruct     (or MODEL=... python measure.py)

    MODEL       the model under test; BASE_URL its address, API_KEY_ENV the variable with its key,
                MAX_TOKENS the limit of a response, EFFORT its reasoning effort
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
INPUT = {
    "--limit": "LIMIT",
    "--prompt_column": "PROMPT_COLUMN",
    "--category_column": "CATEGORY_COLUMN",
}
# What messages call the others; the address is a judge's.
OTHERS = {"--output_path": "RESULTS", "--overwrite": "OVERWRITE=1"}
OTHERS |= {"--base_url": "its provider's ..._BASE_URL"}


def setting(name: str, default: str = "") -> str:
    """A variable's value."""
    return os.environ.get(name, "").strip() or default


def steps(
    folder: Path, judge: str, labels: Path, panel: Sequence[str]
) -> Iterator[tuple[str, list[str], Mapping[str, str]]]:
    """Script, flags, and flag -> variable, of stages 4, 5 and, with a panel, 3, on each side."""
    for side, variable in (("over_refusal", "PROMPTS"), ("toxic", "TOXIC")):
        if prompts := setting(variable):
            stem = file_name_part(Path(without_query(prompts)).stem)
            file = f"{stem}/{file_name_part(setting('MODEL'))}.csv"
            responses = f"{folder}/responses/{side}/{file}"
            names = {"--input_file": variable} | UNDER_TEST | INPUT
            yield ALIGN, [*set_by(names), f"--output_path={responses}"], names
            checked = f"{folder}/{side}/{file_name_part(judge)}/{file}"
            flags = [f"--input_file={responses}", f"--output_path={checked}"]
            flags += [f"--check_model={judge}", *set_by({})]
            yield CHECK, flags, {"--check_model": "JUDGE"}
            if panel:
                names = {"--input_file_path": variable} | INPUT
                flags = [*set_by(names), f"--moderator_model={','.join(panel)}"]
                flags += [f"--output_path={labels}/{stem}.csv"]
                names |= {"--moderator_model": "LABELS"}
                yield "moderator/moderate_only.py", flags, names


def set_by(names: Mapping[str, str]) -> list[str]:
    """The flags whose variables are set, and those that follow from others."""
    found = [f"{flag}={value}" for flag, name in names.items() if (value := setting(name))]
    shuffle = ["--shuffle=0"] * ("--limit" in names and bool(setting("LIMIT")))
    return [*found, *shuffle, *["--overwrite"] * (setting("OVERWRITE") == "1")]


def run(script: str, flags: Sequence[str], names: Mapping[str, str]) -> str:
    """Run a script, and give what it prints on stdout; end with its status if it stops."""
    os.environ[VARIABLES] = json.dumps({**OTHERS, **names})
    command = [sys.executable, str(Path(__file__).resolve().parent / script), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        signal.signal(signal.SIGINT, lambda number, frame: None)  # it gets Ctrl-C, too
        said, _ = child.communicate()
    if child.returncode not in (0, 3):  # 3: some rows failed, and stand in a file of their own
        sys.exit(child.returncode)
    return said


def is_fresh(script: str, flags: Sequence[str]) -> bool:
    """Whether the CSV of a step that sends nothing is newer than the step's input and code."""
    paths = ("--input_file", "--output_path")
    source, output = (Path(one.partition("=")[2]) for one in flags if one.startswith(paths))
    root = Path(__file__).resolve().parent
    behind = [source, root / script, *(root / "orbench").rglob("*.py")]
    newest = max(path.stat().st_mtime for path in behind if path.is_file())
    return output.is_file() and output.stat().st_mtime > newest and not setting("OVERWRITE")


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
    plans = list[list[int]]()  # see `engine.foresee`
    for script, flags, names in todo:
        later = plans[-1][0] if script == CHECK else 0  # responses that are still to come
        dry = ["--dry_run"] * (setting("DRY_RUN") == "1")
        said = run(script, [*flags, *dry, f"--preflight={later}"], names)
        plans.append([int(number) for number in said.split()])
    to_send, tokens, seconds = map(sum, zip(*plans, strict=True))
    about = f"about {tokens:,} tokens in the prompts, {seconds / 60:.0f} min"
    say(f"to send: {to_send:,} requests, {about}")
    if setting("DRY_RUN") == "1":
        return 0
    for (script, flags, names), plan in zip(todo, plans, strict=True):
        if plan[0] or not is_fresh(script, flags):
            say(f"== {script}")
            run(script, flags, names)
    flags = ["--with_published", "--html", f"--output_dir={folder}"]
    flags += ["--over_refusal", f"{folder}/over_refusal"]
    flags += ["--toxic", f"{folder}/toxic"] * (folder / "toxic").is_dir()
    if ratings or panel:
        judged = [str(path) for path in labels.glob("*.csv") if not path.match("*_failed.csv")]
        flags += ["--toxicity", *ratings, *sorted(judged)]
    run("response_checker/plot_results.py", flags, {})
    tell(folder / "results.html")
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
