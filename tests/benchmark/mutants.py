"""Plants faults in the code behind the figures, one at a time, and shows those that no test sees.

    python tests/benchmark/mutants.py --sample 60

Works on a copy of the repository in a temporary folder, with cosmic-ray. A sample is drawn with a
fixed seed. What survives is either a gap in the tests or a change that changes nothing.
"""

import argparse
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
# A module -> the tests that guard it, quickest first.
GUARDED = {
    "orbench/rates.py": "tests/test_rates.py",
    "orbench/clustered.py": "tests/test_clustered.py",
    "orbench/correction.py": "tests/test_correction.py",
    "orbench/planning.py": "tests/test_planning.py",
    "orbench/report/results.py": "tests/test_golden.py tests/test_plot_results.py",
    "orbench/report/comparisons.py": "tests/test_golden.py tests/test_plot_results.py",
    "orbench/report/tables.py": "tests/test_golden.py tests/test_plot_results.py",
}
CONFIG = """[cosmic-ray]
module-path = "{module}"
timeout = 600
excluded-modules = []
test-command = "{python} -m pytest -x -n 0 {tests}"
[cosmic-ray.distributor]
name = "local"
"""
SEED = 14
PLACE = "start_pos_row, start_pos_col, operator_name, occurrence"


def survivors(folder: Path, module: str, tests: str, sample: int) -> tuple[int, list[str]]:
    """How many faults were planted in a module, and those that its tests did not see."""
    config, session = folder / "mutants.toml", folder / "mutants.sqlite"
    session.unlink(missing_ok=True)
    config.write_text(CONFIG.format(module=module, python=sys.executable, tests=tests))
    command = [sys.executable, "-m", "cosmic_ray.cli"]
    subprocess.run([*command, "init", config, session], cwd=folder, check=True)
    with sqlite3.connect(session) as database:
        found = database.execute(f"select job_id from mutation_specs order by {PLACE}")
        jobs = [job for (job,) in found]
        kept = random.Random(SEED).sample(jobs, min(sample, len(jobs)))
        for job in set(jobs) - set(kept):
            for table in ("mutation_specs", "work_items"):
                database.execute(f"delete from {table} where job_id = ?", (job,))
    subprocess.run([*command, "exec", config, session], cwd=folder, check=True)
    with sqlite3.connect(session) as database:
        found = database.execute(
            "select start_pos_row, operator_name, diff from work_results join mutation_specs "
            "using (job_id) where test_outcome = 'SURVIVED' order by 1"
        )
        return len(kept), [f"{module}, line {line}: {name}\n{diff}" for line, name, diff in found]


def main(sample: int, only: str) -> None:
    """Print the survivors of each module, and how many there are."""
    chosen = {module: tests for module, tests in GUARDED.items() if only in module}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "copy"
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, folder, ignore=left_out)
        planted = unseen = 0
        for module, tests in chosen.items():
            n, left = survivors(folder, module, tests, -(-sample // len(chosen)))
            print(*left, f"{module}: {n - len(left)} of {n} seen", sep="\n", flush=True)
            planted, unseen = planted + n, unseen + len(left)
    print(f"{planted - unseen} of {planted} faults seen")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=60, help="faults in all (default: 60)")
    parser.add_argument("--only", default="", help="modules whose path holds this")
    args = parser.parse_args()
    main(args.sample, args.only)
