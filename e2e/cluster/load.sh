#!/bin/bash
# load.sh IMAGE…: copy images from buildah's store to every running node.
# load.sh --pause I: give node I the image of pod sandboxes, which is built on the spot.
. "$(dirname "$0")/env.sh"

need_root

pause_image() {
  local archive=$CACHE/pause.tar
  if [ ! -f "$archive" ]; then
    mkdir -p "$CACHE/pause"
    gcc -x c -static -Os -o "$CACHE/pause/pause" "$HERE/pause.c"
    "$HERE/image.py" "$CACHE/pause" lk.local/pause:1 "$archive" /pause
  fi
  on_node "$1" images import "$archive" >/dev/null
}

from_buildah() {
  local archive file
  archive=$(mktemp -u /var/tmp/lk-image-XXXX.tar)
  # shellcheck disable=SC2064 # this archive, whatever follows
  trap "rm -f '$archive'" EXIT
  buildah push -q "$1" "docker-archive:$archive:$1"
  local imports=() import
  for file in "$STATE"/pid/containerd*; do
    on_node "${file##*containerd}" images import "$archive" >/dev/null &
    imports+=($!)
  done
  for import in "${imports[@]}"; do wait "$import"; done
  rm -f "$archive"
}

if [ "${1:-}" = --pause ]; then
  pause_image "$2"
else
  for image; do from_buildah "$image"; done
fi
