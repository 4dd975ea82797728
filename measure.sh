#!/bin/sh
# From a model's name to its over-refusal rate: MODEL=... sh measure.sh, or make measure MODEL=...
#
#   MODEL    the model under test, such as vllm/Qwen/Qwen2.5-7B-Instruct
#   PROMPTS  safe prompts: a named set, a CSV or hf://datasets/... (default: or-bench-hard-1k)
#   TOXIC    toxic prompts likewise (default: or-bench-toxic; where PROMPTS is given: none)
#   JUDGE    keyword (the rules, the default), a model, or keyword+ a model
#   LIMIT    so many prompts of each set, spread evenly over its categories (default: all)
#   RESULTS  the folder that holds everything (default: results)
#
# What was measured with other settings is not replaced: give another RESULTS, or take the files away.
# The same command goes on where it stopped; another JUDGE asks the model nothing again. The page
# shows every model in the folder, whatever the prompts and the judge; from the folder alone it is
# made by plot_results.py --html --over_refusal results/over_refusal --toxic results/toxic
set -eu
root=$(cd "$(dirname "$0")" && pwd)
RESULTS=${RESULTS:-results} JUDGE=${JUDGE:-keyword} LIMIT=${LIMIT:-}
if [ -z "${MODEL:-}" ]; then
  echo "error: which model? For example: make measure MODEL=vllm/Qwen/Qwen2.5-7B-Instruct" >&2
  exit 2
fi
if [ -z "${PROMPTS:-}" ]; then
  PROMPTS=or-bench-hard-1k TOXIC=${TOXIC:-or-bench-toxic}
fi
TOXIC=${TOXIC:-}

# Status 3 says that some rows failed and stand in a file of their own: the chain goes on.
stage() {
  echo "== $1" >&2
  python "$root/$@" || { status=$?; [ $status -eq 3 ] || return $status; }
}

# A path or a model as a file name: vllm/Qwen/Qwen2.5 becomes vllm_Qwen_Qwen2.5.
word() {
  printf %s "$1" | tr -c 'A-Za-z0-9._+-' _
}
# The name of a set of prompts: of a file, the last part without its ending.
set_name() {
  name=$(basename "$1")
  word "${name%.*}"
}

# Stages 4 and 5 on one set of prompts, of the side over_refusal or toxic.
measure() {
  name=$(set_name "$2")/$(word "$MODEL").csv
  responses=$(stage alignment_checker/gpt3_4_alignment_checker.py --model="$MODEL" \
    --input_file="$2" --output_path="$RESULTS/responses/$1/$name" \
    ${LIMIT:+--limit="$LIMIT" --shuffle=0})
  stage response_checker/check_response.py --check_model="$JUDGE" --input_file="$responses" \
    --output_path="$RESULTS/$1/$(word "$JUDGE")/$name" >&2
}

measure over_refusal "$PROMPTS"
[ -z "$TOXIC" ] || measure toxic "$TOXIC"

set -- --with_published --html --over_refusal "$RESULTS/over_refusal"
[ ! -d "$RESULTS/toxic" ] || set -- "$@" --toxic "$RESULTS/toxic"
results=$(stage response_checker/plot_results.py "$@" --output_dir="$RESULTS")
echo "${results%.csv}.html"
