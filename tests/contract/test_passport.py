"""Passports of judges, on invented responses that a loopback server has in place of GitHub."""

import json
from collections.abc import Iterator
from hashlib import sha256

import pytest

from orbench.judging import kinds
from orbench.stages.prompt_sets import LABELED_SETS
from tests.conftest import CHECK, Desk, error_line
from tests.hub_server import HubServer
from tests.server import answer, error

NO = "I cannot help with that."
YES = "Fold it along the middle."
# Label of xstest-responses and text of ten responses each; tone of chatgpt-refusals, likewise.
XSTEST = [("1_full_compliance", YES), ("2_full_refusal", NO), ("3_partial_refusal", YES)]
CHATGPT = [("complied", NO), ("dontknow", YES), ("", NO), ("redirected", YES), ("rejected", NO)]
TEXTS = {
    "xstest-responses": "prompt,completion,final_label\n"
    + "".join(f"{n}{a[0]}?,{b},{a}\n" for a, b in XSTEST for n in range(10)),
    "chatgpt-refusals": json.dumps(
        [{"prompt": f"{n}{a}?", "response": b, "tone": a} for a, b in CHATGPT for n in range(10)]
    ),
}
FLAGS = ("--validate_against=label", "--quiet")
RESULTS = "response_checker/plot_results.py"


class RawServer(HubServer):
    """Files by their paths, as raw.githubusercontent.com serves them."""

    def answer_to(self, path: str) -> tuple[int, dict[str, str], bytes]:
        body = self.files.get(path.strip("/"))
        return (404, {}, b"") if body is None else (200, {}, body)


@pytest.fixture
def raw(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[RawServer]:
    """The invented sets; the environment of this process is that of the runs."""
    files = {}
    for name, text in TEXTS.items():
        entry = LABELED_SETS[name]
        file = next(iter(entry["files"]))
        files[f"{entry['commit']}/{file}"] = text.encode()
        pinned = {file: sha256(text.encode()).hexdigest()}
        monkeypatch.setitem(LABELED_SETS, name, entry | {"files": pinned})
    with RawServer(files) as server:
        yield server


def judged(desk: Desk, raw: RawServer, *flags: str, status: int = 0) -> str:
    """What a run on labeled responses says."""
    env = {"GITHUB_RAW_ENDPOINT": raw.url, "HOME": str(desk.folder)}
    flags = ("--input_file=labeled-responses", *FLAGS, *flags)
    done = desk.run(CHECK, *flags, env=env, status=status)
    return error_line(done) if status == 1 else done.stderr


def test_a_passport_holds_the_errors_by_set_and_by_form_of_refusal(
    desk: Desk, raw: RawServer
) -> None:
    desk.write("labeled-responses.csv", "not the set")
    said = judged(desk, raw, "--check_model=rules", "--output_path=o.csv")
    assert (
        "passport of rules: misses 50.0 %, false alarms 50.0 % on 60 labeled responses"
        "; the rules were tuned on some of them\n" in said
    )
    passport = json.loads(desk.text("passport.json"))["o.csv"]
    errors = {
        name: [part["n"], part["misses"][0], (part["false_alarms"] or [None])[0]]
        for name, part in (passport["categories"] | passport["forms"]).items()
    }
    assert errors == {
        "chatgpt refusals": [30, 0.5, 1],  # without those that do not know or have no label
        "xstest responses": [30, 0.5, 0],
        "indirect_refusal": [10, 1, None],
        "partial_refusal": [10, 1, None],
        "refusal": [20, 0, None],
    }
    assert passport["input"] == {"path": "", "sha256": "", "rows": 60}
    assert passport["source"]["sets"]["xstest-responses"]["license"] == "CC-BY-4.0"
    of_answers = judged(desk, raw, "--check_model=rules", "--output_path=p.csv", "--limit=10")
    assert "passport" not in of_answers  # which show no misses
    assert len(raw.asked) == 2  # the files are kept
    report = desk.run(RESULTS, "--over_refusal", "m=o.csv", "--table", "--export=hub").stderr
    assert "not for the Hub: m, labeled-responses: its prompts are not from the Hub" in report


def test_judges_without_responses_in_common_are_not_compared(desk: Desk, raw: RawServer) -> None:
    rules = "--check_model=rules"
    judged(desk, raw, rules, "--input_file=xstest-responses", "--output_path=x.csv")
    said = judged(desk, raw, rules, "--input_file=chatgpt-refusals", "--output_path=c.csv")
    assert "misses 50.0 %, false alarms 100.0 % on 30 labeled responses" in said
    assert "minus" not in said


def test_a_judge_is_compared_on_the_responses_that_both_scored_and_named_in_reports(
    desk: Desk, raw: RawServer
) -> None:
    judged(desk, raw, "--check_model=rules", "--output_path=o.csv")
    desk.serve(lambda body, seen: error(400) if "71?" in str(body) else answer("[[2]]"))
    said = judged(desk, raw, "--check_model=j", "--prices=1,2", "--output_path=j.csv", status=3)
    words = (
        "passport of j: misses 0.0 %, false alarms 100.0 % on 59 labeled responses, 1 more unscored"
    )
    minus = "minus o.csv, on responses that both scored: "
    assert f"{words}\nfor 1,000 rows: cost $0.0197\n{minus}accuracy +18.6 points [" in said
    assert f"\n{minus}misses -50.0 points [-66.2, -30.8], n 40\n" in said
    desk.write("passport.json", '{"": {}, "other program": {}, ' + desk.text("passport.json")[1:])
    give_results(desk, "over/j.csv")
    desk.write("over/passport.json", '{"other program": {"note": "passport"}}')
    desk.csv("over/import.csv", ("prompt", "response", "is_rejected"), [("Who?", NO, "True")])
    results = ("m=over/j.csv", "o=over/import.csv")
    said = desk.run(RESULTS, "--over_refusal", *results, "--output_dir=out").stderr
    assert f"m, over-refusal rate: {words}\n" in said and said.count("passport") == 1
    rules = ("--check_model=rules", "--overwrite", "--validate_against=human")
    desk.csv("r.csv", ("prompt", "response", "human"), [("Why?", YES, "refusal")])
    desk.stage(CHECK, *rules)  # in place of o.csv
    said = judged(desk, raw, "--check_model=j", "--output_path=j.csv", status=3)
    assert words in said and "minus" not in said


OTHER_JUDGES = {
    "another model answers": ("models", [{"served_by": {"loopback-1": 1, "x": 1}}]),
    "one is asked without a parameter": (
        "models",
        [{"served_by": {"loopback-1": 2}, "left_out_parameters": {"response_format": 2}}],
    ),
    "the suite is another": ("versions", {"orbench": "0.9.0"}),
    "it is elsewhere": ("settings", {"model": "j at http://other/v1"}),
    "it is read in another way": ("parameters", {"check_model": "j", "rubric": "graded"}),
}


def test_a_passport_is_named_beside_no_other_judge(desk: Desk, raw: RawServer) -> None:
    desk.serve("[[2]]")
    judged(desk, raw, "--check_model=j", "--random_seed=1", "--output_path=j.csv")
    give_results(desk, "j1.csv", "--random_seed=1")
    record = desk.record("j1.csv")
    same = ("models", [{"served_by": {"loopback-1 via y": 2}}])
    for name, (part, value) in {"": same, **OTHER_JUDGES}.items():
        desk.write("j1.run.json", json.dumps(record | {part: value}))
        said = desk.run(RESULTS, "--over_refusal", "m=j1.csv", "--table").stderr
        assert ("passport of j, random seed 1: misses 0.0 %" in said) == (not name), name
    give_results(desk, "j2.csv", "--random_seed=2")
    assert "passport" not in desk.run(RESULTS, "--over_refusal", "m=j2.csv", "--table").stderr


def test_a_guards_passport_is_of_its_wording(
    desk: Desk, raw: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.serve("Safety: Safe\nCategories: None\nRefusal: Yes")
    flags = ("--check_model=vllm/qwen3guard", f"--base_url={desk.url}")
    judged(desk, raw, *flags, "--output_path=p.csv")
    give_results(desk, "same.csv", *flags)
    guard = kinds.kind_of("qwen3guard")
    reworded = guard._replace(messages={"user": "{prompt} {response}"})
    monkeypatch.setattr(kinds, "_GUARDS", [reworded])
    give_results(desk, "other.csv", *flags)
    for file, passports in (("same.csv", 1), ("other.csv", 0)):
        said = desk.run(RESULTS, "--over_refusal", f"m={file}", "--table").stderr
        assert said.count("passport of vllm/qwen3guard") == passports


def give_results(desk: Desk, name: str, *flags: str) -> None:
    """Results that the judge j gives."""
    desk.csv("r.csv", ("prompt", "response"), [("Why?", YES), ("How?", NO)])
    desk.write("r.run.json", '{"under_test": {"id": "m"}}')
    desk.stage(CHECK, "--check_model=j", f"--output_path={name}", *flags)


def test_a_run_in_several_files_leaves_the_passport_of_the_one_file_there(
    desk: Desk, raw: RawServer
) -> None:
    judged(desk, raw, "--check_model=rules", "--output_path=o.csv")
    passport = desk.text("passport.json")
    desk.serve("[[2]]")
    said = judged(desk, raw, "--check_model=j", "--output_path=o.csv", "--merge_result=False")
    assert "passport" not in said and desk.text("passport.json") == passport
    validation = json.loads(desk.text("o.validation.json"))
    assert validation["made_for"]["csv"] == ""  # not the file of the rules


def test_what_is_not_as_it_should_be_stops_the_run_in_a_line(desk: Desk, raw: RawServer) -> None:
    rules = "--check_model=rules"
    line = desk.stopped(CHECK, rules, "--input_file=xstest-respons")
    assert "the sets are labeled-responses, xstest-responses, chatgpt-" in line
    desk.write("passport.json", '{"o.csv": {"note": 1}}')
    assert "passport.json is damaged" in judged(desk, raw, rules, status=1)
    assert not [*desk.folder.glob("*.csv")]  # nothing was judged
    raw.files = dict.fromkeys(raw.files, b"other")
    desk.folder.joinpath(".cache").rename(desk.folder / "old")
    assert "gpt4.csv of paul-rottger/" in (line := judged(desk, raw, rules, status=1))
    assert "its SHA-256 differs" in line
    raw.files = {}
    line = judged(desk, raw, rules, status=1)
    assert "cannot be read: Client error '404" in line
    assert line.endswith("; check the network, or name a mirror in GITHUB_RAW_ENDPOINT")
