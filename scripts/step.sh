# Sourced by the front-door scripts: one line a step, the whole output only where it fails.
#
# step <what> <command…>   Leaves the shell with the command's exit code where it fails.

mkdir -p build
step_log=build/$(basename "$0" .sh).log
: >"$step_log"

# On a terminal, how far ninja is: a first build takes minutes. Ends with the script.
show_progress() {
  while sleep 1 && kill -0 $$ 2>/dev/null; do
    printf '\r%-44s%s ' "$step_name" "$(tail -n 1 "$step_log" | grep -o '^\[[0-9/]*\]')"
  done
}

step() {
  step_name=$1
  shift
  printf '%-44s' "$step_name"
  step_start=$(date +%s)
  step_from=$(($(wc -l <"$step_log") + 1))
  step_code=0
  step_watcher=''
  [ ! -t 1 ] || { show_progress & step_watcher=$!; }
  "$@" >>"$step_log" 2>&1 </dev/null || step_code=$?
  [ -z "$step_watcher" ] || {
    kill "$step_watcher" && wait "$step_watcher" || true
    printf '\r%-44s' "$step_name"
  } 2>/dev/null
  printf '%4d s     \n' $(($(date +%s) - step_start))
  [ "$step_code" -ne 0 ] || return 0
  tail -n +"$step_from" "$step_log" | tail -n 60 >&2
  echo "FAILED: $step_name (exit code $step_code); all of it: $step_log" >&2
  exit "$step_code"
}
