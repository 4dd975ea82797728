#!/bin/sh
# A dated release of new prompts: make prompts NAME=2026-12 REWRITER=... TARGETS=... JUDGES=...
#
#   NAME          the folder under releases/; where it exists, the command resumes
#   REWRITER      the model that writes seeds and rewrites
#   TARGETS       "A B C": the models whose refusals select prompts
#   JUDGES        "X Y Z": what any of them calls toxic is left out
#   PER_CATEGORY  safe prompts wanted in each category (default: 100)
#   CATEGORIES    "harmful privacy" (default: all ten)
#   EXCLUDE       files or named sets whose prompts, and near-duplicates, are left out; those of
#                 every other release always are
#   MIN_REFUSING  families of targets that must refuse a prompt (default: 1)
#
# Writes hard.csv, toxic.csv (the seeds that most judges call toxic), README.md and audit_sheet.csv.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
for name in NAME REWRITER TARGETS JUDGES; do
  if eval "[ -z \"\${$name:-}\" ]"; then
    echo "error: give $name, as in make prompts NAME=2026-12 REWRITER=gpt4 TARGETS=... JUDGES=..." >&2
    exit 2
  fi
done
all="deception harassment harmful hate illegal privacy self-harm sexual unethical violence"
PER_CATEGORY=${PER_CATEGORY:-100} CATEGORIES=${CATEGORIES:-$all}
EXCLUDE=${EXCLUDE:-} MIN_REFUSING=${MIN_REFUSING:-1}
release=releases/$NAME work=releases/$NAME/work

mkdir -p "$work"
settings=$(for name in REWRITER TARGETS JUDGES PER_CATEGORY CATEGORIES EXCLUDE MIN_REFUSING; do
  eval "echo \"$name=\$$name\""
done)
[ -f "$work/settings" ] || echo "$settings" > "$work/settings"
if ! echo "$settings" | diff "$work/settings" - >&2; then
  echo "error: $release was made with other settings (<); give those, or another NAME" >&2
  exit 1
fi

# Status 3 says that some rows failed and stand in a file of their own: the chain goes on.
stage() {
  echo "== $1" >&2
  python "$root/$@" || { status=$?; [ $status -eq 3 ] || return $status; }
}
list() { echo "$@" | tr ' ' ,; }

quick=
[ "$REWRITER" != scripted ] || quick="--rounds=2 --max_tokens=40" # there is little to find
for file in releases/*/hard.csv releases/*/toxic.csv; do
  [ ! -f "$file" ] || [ "${file%/*}" = "$release" ] || EXCLUDE="$EXCLUDE $file"
done
set --
for category in $CATEGORIES; do
  seeds=$(stage toxic_prompt_generator/generate_toxic_promt_from_category.py --model="$REWRITER" \
    --category="$category" --num_toxic_prompts=$((3 * PER_CATEGORY)) \
    --output_path="$work/$category.csv")
  hits=$(stage rewritter/evolve_prompts.py --seeds="$seeds" --rewriter="$REWRITER" \
    --targets="$(list $TARGETS)" --judges="$(list $JUDGES)" --wanted="$PER_CATEGORY" \
    --min_refusing="$MIN_REFUSING" $quick ${EXCLUDE:+--exclude $EXCLUDE} \
    --output_path="$work/${category}_hits.csv")
  toxic=$(stage moderator/moderate_only.py --moderator_model="$(list $JUDGES)" \
    --input_file_path="$seeds" --output_path="$work/${category}_seeds.csv" --merge_result=False)
  set -- "$@" "$hits" "$toxic"
done
stage moderator/build_dataset.py --moderated_files "$@" --names hard toxic \
  --output_dir="$release" --audit_sample=100 ${EXCLUDE:+--exclude $EXCLUDE}
