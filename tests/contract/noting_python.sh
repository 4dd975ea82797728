#!/bin/sh
# A python that only notes its words: one line a call in $ROOT/calls. Calls that hold $FAILS end with
# $STATUS. Prints the path of a CSV, as a stage does, and writes those of --output_path.
echo "$*" | sed "s#$ROOT/##" >> "$ROOT/calls"
case "$*" in *"${FAILS:-nothing}"*) echo fails >&2; [ "$STATUS" = 3 ] || exit "$STATUS" ;; esac
[ "$1" != -m ] || exit 0
path=$(basename "$1" .py).csv
for word; do case $word in
  --output_path=prompts.csv) path=prompts_toxic.csv ;;
  --output_path=*) path=${word#*=}; mkdir -p seeds; touch "${path%.csv}.run.json"
    printf 'prompt,category\nFold it.,%s\n' "$(basename "$path" .csv)" > "$path" ;;
esac; done
echo "$path"
case "$*" in *"${FAILS:-nothing}"*) exit "$STATUS" ;; esac
