# What `.ci/run` and `.ci/full` share.

# The builds of these scripts need neither incremental compilation nor debug information. Without
# both, the builds are faster, and target/ is much smaller.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none CARGO_PROFILE_TEST_DEBUG=none

# Runs a command under a title. Prints its time, and the CPU time of the processes that it waited for.
step() {
    local title=$1 TIMEFORMAT="=== $1: %0R s, CPU time %0U s + %0S s"
    shift
    printf '\n=== %s: %s\n' "$title" "$*"
    time "$@"
}
