# Prints TAP version 14 (testanything.org) from bash. Steps depend on each other, so the program exits after the first failure.
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

# pick EXPRESSION…: prints parts of the JSON on stdin, such as .keys[0].kid, separated by spaces.
pick() { node -p "const \$ = JSON.parse(require('fs').readFileSync(0)); [$(printf '$%s,' "$@")].map(String).join(' ')"; }
