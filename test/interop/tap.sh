# For bash: prints TAP version 14 (testanything.org). What comes after a step builds on it, so the first that fails ends the program.
count=0

# holds NAME WANTED FOUND
holds() {
  count=$((count + 1))
  if [[ $3 == "$2" ]]; then
    echo "ok $count - $1"
  else
    printf 'not ok %s - %s\n  # wanted %s, found %s\n' "$count" "$1" "$2" "${3//$'\n'/ }"
    plan
    exit 1
  fi
}

plan() { echo "1..$count"; }

# pick EXPRESSION: a part of the JSON on standard input, such as .keys[0].kid; several are joined by a space.
pick() { node -p "const \$ = JSON.parse(require('fs').readFileSync(0)); [$(printf '$%s,' "$@")].map(String).join(' ')"; }
