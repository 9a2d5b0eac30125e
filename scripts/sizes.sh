# Limits on the sizes of what users download; sourced by the scripts that build it.
most_program_bytes=16000000
most_wheel_bytes=6000000

# at_most BYTES FILE
at_most() {
    local bytes
    bytes=$(wc -c <"$2")
    echo "${2##*/}: $bytes bytes"
    [ "$bytes" -le "$1" ] || { echo "${2##*/}: more than $1 bytes" >&2 && exit 1; }
}
