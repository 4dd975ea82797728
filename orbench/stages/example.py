"""Results of invented models, to see what a report looks like.

    python -m orbench.stages.example --models=40 --output_dir=results_of_40
    python response_checker/plot_results.py --merged results_of_40 --html

Writes a result file per model, as stage 5 writes it, and its run record. Models, prompts, responses
and verdicts are invented (example.toml), the same ones in each run.
"""

from collections.abc import Iterator
from itertools import islice, product
from random import Random

from orbench.base.messages import run_script
from orbench.base.records import write_record
from orbench.base.tables import make_folder, sha256_of, write_csv
from orbench.base.toml_files import toml_beside
from orbench.base.words import Json, Row, Words
from orbench.stages.flags import Parser

INVENTED = toml_beside(__file__)


def main(argv: Words) -> int:
    flags = Parser(__doc__, "example").parse_args(argv)
    make_folder(flags.output_dir)
    for number, model in enumerate(INVENTED["models"][: flags.models]):
        path = flags.output_dir / f"{number}.csv"
        write_csv(path, INVENTED["columns"], rows_of(model))
        written = {"csv": sha256_of(path), "failed": ""}
        facts = INVENTED["record"] | {"under_test": model, "output": written}
        write_record(path, "check_response", argv, facts)
    return 0


def rows_of(model: Json) -> Iterator[Row]:
    """Yield the rows of a model's result."""
    luck = Random(str(model))
    prompts = product(INVENTED["endings"], INVENTED["texts"])
    for ending, text in islice(prompts, INVENTED["prompts"]):
        refuses = luck.random() < model["refused"][text["is_toxic"]] ** text["ease"]
        response = luck.choice(INVENTED["refusals" if refuses else "answers"])
        prompt = {"prompt": f"{text['text']} {ending}", "seed_id": f"{text['category']} {ending}"}
        yield text | prompt | response


if __name__ == "__main__":
    run_script(main)
