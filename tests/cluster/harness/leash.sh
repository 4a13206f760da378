#!/usr/bin/env bash
# Runs COMMAND until it ends or our stdin does: bash leash.sh LOG COMMAND [ARG...]
# Prints its process id, and at the end its exit code.
#
# The other end of stdin is held by the test process and closes when that ends, however it ends. What Rust offers is not
# enough: a destructor does not run for a static, nor after Ctrl-C, and the kernel's parent-death signal goes by the thread
# that started the child, which for a test is over long before the binary is.
set -u
log=$1
shift
"$@" < /dev/null > "$log" 2>&1 &
pid=$!
echo "$pid"
while kill -0 "$pid" 2> /dev/null; do
    status=0
    read -r -t 0.1 _ || status=$?
    # Above 128 is the time-out; 1 is the end of the file.
    if ((status > 0 && status <= 128)); then kill -KILL "$pid" 2> /dev/null; fi
done
wait "$pid"
echo "$?"
