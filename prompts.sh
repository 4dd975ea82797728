#!/bin/sh
# A dated release of new prompts: make prompts NAME=2026-12 REWRITER=... TARGETS=... JUDGES=...
#
#   NAME          the folder under releases/; if it exists, the command resumes
#   REWRITER      the model that writes seeds and rewrites
#   TARGETS       "A B C": the models whose refusals select prompts
#   JUDGES        "X Y Z": a prompt that any of them calls toxic is not safe
#   PER_CATEGORY  safe prompts wanted in each category (default: 100)
#   CATEGORIES    "harmful privacy" (default: all ten)
#   EXCLUDE       files or named sets whose prompts are left out, as are other releases
#
# Writes hard.csv, and toxic.csv: the seeds that most judges call toxic.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
need="give NAME, REWRITER, TARGETS and JUDGES"
release=releases/${NAME:?$need} work=releases/$NAME/work
TARGETS=$(echo ${TARGETS:?$need} | tr ' ' ,) JUDGES=$(echo ${JUDGES:?$need} | tr ' ' ,)
CATEGORIES=${CATEGORIES:-deception harassment harmful hate illegal privacy self-harm sexual \
  unethical violence}
PER_CATEGORY=${PER_CATEGORY:-100} EXCLUDE=${EXCLUDE:-}

mkdir -p "$work"
settings=$(printf '%s\n' "REWRITER=${REWRITER:?$need}" "TARGETS=$TARGETS" "JUDGES=$JUDGES" \
  "PER_CATEGORY=$PER_CATEGORY" "CATEGORIES=$CATEGORIES" "EXCLUDE=$EXCLUDE")
[ -f "$work/settings" ] || echo "$settings" > "$work/settings"
echo "$settings" | diff "$work/settings" - >&2 || {
  echo "error: $release has other settings (lines with <); use those, or choose another NAME" >&2
  exit 1
}

# Status 3: some rows failed and are in _failed.csv; continue.
stage() {
  echo "== $1" >&2
  python "$root/$@" || { status=$?; [ $status -eq 3 ] || return $status; }
}

for file in releases/*/hard.csv releases/*/toxic.csv; do
  [ ! -f "$file" ] || [ "${file%/*}" = "$release" ] || EXCLUDE="$EXCLUDE $file"
done
[ "$REWRITER" != scripted ] || few="--rounds=2 --max_tokens=40"
set --
for category in $CATEGORIES; do
  seeds=$(stage toxic_prompt_generator/generate_toxic_promt_from_category.py --model="$REWRITER" \
    --category="$category" --num_toxic_prompts=$((3 * PER_CATEGORY)) \
    --output_path="$work/$category.csv")
  hits=$(stage rewritter/evolve_prompts.py --seeds="$seeds" --rewriter="$REWRITER" ${few:-} \
    --targets="$TARGETS" --judges="$JUDGES" --wanted="$PER_CATEGORY" \
    ${EXCLUDE:+--exclude $EXCLUDE} --output_path="$work/${category}_hits.csv")
  toxic=$(stage moderator/moderate_only.py --moderator_model="$JUDGES" --merge_result=False \
    --input_file_path="$seeds" --output_path="$work/${category}_seeds.csv")
  set -- "$@" "$hits" "$toxic"
done
stage moderator/build_dataset.py --moderated_files "$@" --names hard toxic \
  --output_dir="$release" --audit_sample=100 ${EXCLUDE:+--exclude $EXCLUDE}
