#!/bin/bash
# up.sh [NODES]: a real Kubernetes cluster without Docker, each node in a network namespace of its
# own. Needs root. Prints the KUBECONFIG to be exported.
. "$(dirname "$0")/env.sh"
. "$HERE/certificates.sh"
NODES=${1:-1}

network() { # One bridge; this machine is the control plane, and the router between the nodes.
  ip link add lk0 type bridge
  ip addr add "$HOST_IP/24" dev lk0
  ip link set lk0 up
  # What this machine had before, for down.sh.
  cat /proc/sys/net/ipv4/ip_forward >"$STATE/ip_forward"
  ip netns list | awk '{print $1}' >"$STATE/namespaces"
  sysctl -qw net.ipv4.ip_forward=1
  iptables -I FORWARD -m comment --comment lk-cluster -j ACCEPT
}

api_server() {
  start etcd "$KUBE" etcd --data-dir "$STATE/etcd" --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380
  start apiserver "$KUBE" apiserver --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 \
    --advertise-address="$HOST_IP" --client-ca-file=pki/ca.crt \
    --tls-cert-file=pki/apiserver.crt --tls-private-key-file=pki/apiserver.key \
    --service-account-key-file=pki/sa.pub --service-account-signing-key-file=pki/sa.key \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=Node,RBAC \
    --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --kubelet-preferred-address-types=InternalIP \
    --kubelet-client-certificate=pki/admin.crt --kubelet-client-key=pki/admin.key
  wait_for 60 kubectl get --raw /readyz
}

controllers() {
  start controller-manager "$KUBE" controller-manager --leader-elect=false \
    --kubeconfig=pki/controller-manager.kubeconfig --root-ca-file=pki/ca.crt \
    --service-account-private-key-file=pki/sa.key --use-service-account-credentials \
    --cluster-signing-cert-file=pki/ca.crt --cluster-signing-key-file=pki/ca.key \
    --node-monitor-period=2s --node-monitor-grace-period=16s
  start scheduler "$KUBE" scheduler --kubeconfig=pki/scheduler.kubeconfig --leader-elect=false
  kubectl create clusterrolebinding kube-proxy --clusterrole=system:node-proxier \
    --user=system:kube-proxy >/dev/null
  kubectl apply -f "$HERE/manifests.yaml" >/dev/null
}

services() {
  cat >coredns.conf <<T
.:53 {
  bind $HOST_IP
  errors
  ready $HOST_IP:8181
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $STATE/pki/coredns.kubeconfig lk
    ttl 1
  }
  cache 1
}
T
  start coredns "$KUBE" coredns -conf coredns.conf
  start volumes "$HERE/volumes.py" "$STATE" "https://$HOST_IP:6443"
  start proxy "$KUBE" proxy --kubeconfig=pki/proxy.kubeconfig --cluster-cidr=10.244.0.0/16 \
    --hostname-override=control-plane --bind-address="$HOST_IP" --conntrack-max-per-core=0
}

nodes() {
  local i
  for i in $(seq "$NODES"); do "$HERE/node.sh" start "$i"; done
  for i in $(seq "$NODES"); do
    wait_for 60 sh -c "'$KUBE' kubectl get node node$i | grep -q ' Ready'"
  done
  kubectl get nodes >&2
}

need_root
install_absent runc=runc containerd=containerd iptables=iptables ip=iproute2 \
  conntrack=conntrack openssl=openssl gcc=gcc /usr/include/stdio.h=libc6-dev \
  /usr/lib/cni/bridge=containernetworking-plugins
"$HERE/build.sh"
if [ -f "$STATE/complete" ] && kubectl get --raw /readyz --request-timeout=5s >/dev/null 2>&1; then
  echo "already up: $STATE (down.sh ends it)" >&2
else
  # What an interrupted start or a reboot left behind.
  "$HERE/down.sh"
  mkdir -p "$STATE/pki"
  cd "$STATE/pki"
  authority
  everybody "$NODES"
  cd "$STATE"
  network
  api_server
  controllers
  services
  nodes
  touch "$STATE/complete"
fi
echo "export KUBECONFIG=$KUBECONFIG"
