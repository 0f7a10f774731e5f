# Sourced by every script here: where things are, and how a daemon is started.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Everything that the running cluster owns.
STATE=${LK_CLUSTER:-/var/tmp/lk-cluster}
# The built kube binary and images; they survive down.sh.
CACHE=${LK_CLUSTER_CACHE:-$HOME/.cache/lk-cluster}
KUBE=$CACHE/kube
# The control plane's address, on the bridge lk0 that all nodes hang on.
HOST_IP=10.243.0.1
KUBECONFIG=$STATE/pki/admin.kubeconfig
export KUBECONFIG

# Exit code of what cannot be done on this machine, which is no failure of ours (EX_TEMPFAIL).
UNAVAILABLE=75
unavailable() { echo "${0##*/}: $*" >&2; exit "$UNAVAILABLE"; }
need_root() { ((EUID == 0)) || unavailable 'root is needed'; }

kubectl() { "$KUBE" kubectl "$@"; }
node_ip() { echo "10.243.0.$((10 + $1))"; }
socket() { echo "$STATE/node$1/containerd.sock"; }
on_node() { ctr -a "$(socket "$1")" -n k8s.io "${@:2}"; } # NODE ARGUMENTS-OF-CTR…

start() { # NAME COMMAND…: a daemon with its log and the file of its process id
  local name=$1
  shift
  mkdir -p "$STATE/log" "$STATE/pid"
  setsid nohup "$@" >"$STATE/log/$name.log" 2>&1 </dev/null &
  echo $! >"$STATE/pid/$name"
}

alive() { # PID: whether it runs and is a daemon of ours; a number may have come to somebody else
  tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -qF -e "$KUBE" -e "$STATE"
}

wait_for() { # SECONDS COMMAND…: until the command succeeds
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { echo "gave up waiting for: $*" >&2; return 1; }
    sleep 0.3
  done
}

established() { # DEFINITION: wait until the API server serves what it defines
  # Of one that is quite new kubectl finds no conditions, and gives up.
  wait_for 60 kubectl wait --for=condition=Established --timeout=5s "crd/$1"
}

install_absent() { # COMMAND=PACKAGE…: Debian packages of the commands or files that are absent
  local need=() pair
  for pair; do
    command -v "${pair%%=*}" >/dev/null || [ -e "${pair%%=*}" ] || need+=("${pair#*=}")
  done
  ((${#need[@]})) || return 0
  command -v apt-get >/dev/null || unavailable "these packages are needed: ${need[*]}"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq "${need[@]}"; } >&2 ||
    unavailable "could not be installed: ${need[*]}"
}
