#!/bin/sh
# The five stages chained, on a small scale, in demo/; measure.py runs stages 4 and 5 and writes the page.
# As it shows little, a second page follows: of 12 models, all invented.
#
#   sh demo.sh                          a small model on 40 hand-written prompts: stages 1 to 3 are
#                                       scripted, stage 4 asks smollm2, a small model that runs on
#                                       this machine, stage 5 decides by rules
#   sh demo.sh MODEL CATEGORY NUMBER    all five with one model
set -eu
root=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$root/demo"
cd "$root/demo"

scripted=

quietly() { # what it says is shown only if it fails
  python "$@" 2> stage.log || { cat stage.log >&2; return 1; }
}

# Status 3: some rows failed and are in _failed.csv; continue. $of: what it is asked about.
stage() {
  echo "== ${of:+$of: }$1${scripted:+, scripted}" >&2
  if [ -n "$scripted" ]; then
    quietly "$root/$@"
  else
    python "$root/$@" || { status=$?; [ $status -eq 3 ] || return $status; }
  fi
}

seeds_of() { # the model, the category, how many
  stage toxic_prompt_generator/generate_toxic_promt_from_category.py \
    --model="$1" --category="$2" --num_toxic_prompts="$3" --output_path="seeds/$2.csv" --overwrite
}

model=${1:-}
if [ -n "$model" ]; then
  writer=$model tested=$model judge=$model rewrites=5
  seeds=$(seeds_of "$model" "${2:-harmful}" "${3:-20}")
  set -- --max_tokens=40
else
  scripted=yes writer=scripted tested=smollm2 judge=rules rewrites=1
  system="Answer in one short sentence." # else it hardly stops
  what="a small model on 40 hand-written prompts"
  if ! PYTHONPATH="$root" python -m orbench.models.local; then
    echo "so stage 4 is scripted too: this run measures nothing" >&2
    tested=scripted what="40 hand-written prompts"
  fi
  cat >&2 <<BANNER
Demo: $what
The prompts were written for this project (orbench/models/scripted_prompts.toml).
Stages 1 to 3 are scripted: they play these prompts back.
System prompt: $system
BANNER
  echo "$system" > system_prompt.txt
  set -- --max_tokens=80 --system_prompt_file=system_prompt.txt
  seeds=seeds.csv
  echo prompt,category > $seeds
  for category in deception harassment harmful hate illegal privacy self-harm sexual unethical \
    violence; do
    one=$(seeds_of scripted "$category" 2 2>> seeds.log) || { cat seeds.log >&2; exit 1; }
    sed 1d "$one" >> $seeds
  done
  cp seeds/deception.run.json seeds.run.json # so that the page says where they come from
  echo "== stage 1, scripted: two seeds of each of the ten categories" >&2
fi

rewritten=$(stage rewritter/mixtral_rewrite_only.py \
  --model="$writer" --input_file="$seeds" --num_rewrites="$rewrites" --overwrite)
moderated=$(of=rewrites stage moderator/moderate_only.py --moderator_model="$writer" \
  --input_file="$rewritten" --column=prompt --output_path=prompts.csv --merge_result=False)
safe=$(echo "$moderated" | sed 's/_toxic/_non_toxic/')
judged=$(of=seeds stage moderator/moderate_only.py --moderator_model="$writer" --input_file="$seeds")
if [ -n "$model" ]; then
  set -- "$@" --labels "$safe" "$judged"
fi
scripted=
page=$(stage measure.py --model="$tested" --judge="$judge" --prompts="$safe" --toxic="$seeds" \
  --pairs --output_dir=. --overwrite "$@")
echo "demo/$page"

echo "== an example: the page of 12 models, all of them invented" >&2
export PYTHONPATH="$root"
quietly -m orbench.stages.example --output_dir=example/results
example=$(quietly "$root/response_checker/plot_results.py" --merged example/results --html \
  --output_dir=example)
echo "demo/${example%.csv}.html"
