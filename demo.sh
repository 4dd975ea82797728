#!/bin/sh
# The five stages in a chain, small, in the folder demo/: sh demo.sh MODEL CATEGORY NUMBER
# Each stage prints the path of its CSV on stdout, and that is the next one's input.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
model=$1 category=$2 number=$3
mkdir -p "$root/demo"
cd "$root/demo"

# Status 3 says that some rows failed and stand in a file of their own: the chain goes on.
stage() {
  echo "== $1" >&2
  python "$root/$@" || [ $? -eq 3 ]
}

seeds=$(stage toxic_prompt_generator/generate_toxic_promt_from_category.py \
  --category="$category" --num_toxic_prompts="$number" --model="$model")
rewrites=$(stage rewritter/mixtral_rewrite_only.py --toxic_seed_path="$seeds" --model="$model")
toxic=$(stage moderator/moderate_only.py --moderator_model="$model" \
  --input_file_path="$rewrites" --column=prompt --merge_result=False)
safe=$(echo "$toxic" | sed 's/_toxic_moderation_/_non_toxic_moderation_/')
responses=$(stage alignment_checker/gpt3_4_alignment_checker.py \
  --model="$model" --input_file="$safe")
checked=$(stage response_checker/check_response.py --check_model="$model" --input_file="$responses")
echo "== done; look into the CSVs in demo/, or draw the result:" >&2
echo "   python response_checker/plot_results.py --over_refusal demo/$checked" >&2
echo "demo/$checked"
