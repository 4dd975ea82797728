#!/bin/sh
# The five stages in a chain, small, in the folder demo/. Each prints the path of its CSV on stdout,
# and that is the next one's input.
#
#   sh demo.sh                          stages 1 to 3 are scripted, stage 4 asks smollm2, a small
#                                       model that runs on this machine, stage 5 decides by rules
#   sh demo.sh MODEL CATEGORY NUMBER    all five with one model
set -eu
root=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$root/demo"
cd "$root/demo"

# Status 3 says that some rows failed and stand in a file of their own: the chain goes on.
stage() {
  echo "== $1" >&2
  python "$root/$@" || { status=$?; [ $status -eq 3 ] || return $status; }
}

# --overwrite: the files are the demo's own, whichever model wrote the last ones.
seeds_of() { # the model, the category, how many
  stage toxic_prompt_generator/generate_toxic_promt_from_category.py \
    --model="$1" --category="$2" --num_toxic_prompts="$3" --output_path="seeds/$2.csv" --overwrite
}

model=${1:-}
if [ -n "$model" ]; then
  writer=$model tested=$model judge=$model rewrites=5
  seeds=$(seeds_of "$model" "${2:-harmful}" "${3:-20}")
else
  writer=scripted tested=smollm2 judge=keyword rewrites=1
  if ! PYTHONPATH="$root" python -m orbench.asking.local; then
    echo "so stage 4 is scripted too: what comes out measures nothing" >&2
    tested=scripted
  fi
  seeds=seeds.csv
  echo prompt,category > "$seeds"
  for category in deception harassment harmful hate illegal privacy self-harm sexual unethical \
    violence; do
    one=$(seeds_of scripted "$category" 6 2>> seeds.log) || { cat seeds.log >&2; exit 1; }
    tail -n +2 "$one" >> "$seeds"
  done
  echo "== stage 1, scripted: six seeds of each of the ten categories" >&2
fi

rewritten=$(stage rewritter/mixtral_rewrite_only.py \
  --model="$writer" --toxic_seed_path="$seeds" --num_rewrites="$rewrites" --overwrite)
toxic=$(stage moderator/moderate_only.py --moderator_model="$writer" \
  --input_file_path="$rewritten" --column=prompt --merge_result=False)
safe=$(echo "$toxic" | sed 's/_toxic_moderation_/_non_toxic_moderation_/')
# The first words of an answer tell whether it is a refusal.
responses=$(stage alignment_checker/gpt3_4_alignment_checker.py \
  --model="$tested" --input_file="$safe" --max_tokens=60)
checked=$(stage response_checker/check_response.py --check_model="$judge" --input_file="$responses")
echo "== the CSVs of all stages are in demo/, the page is in the last line" >&2
results=$(stage response_checker/plot_results.py \
  --over_refusal "$checked" --html --formats=png --output_dir=.)
echo "demo/${results%.csv}.html"
