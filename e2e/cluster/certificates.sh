# Sourced by up.sh: a certificate authority, and who everybody is. All of it in $STATE/pki.

authority() {
  openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 3650 \
    -subj /CN=lk-ca 2>/dev/null
  openssl genrsa -out sa.key 2048 2>/dev/null
  openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
}

certificate() { # NAME SUBJECT ALTERNATIVE-NAMES
  openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" \
    -days 3650 -extfile <(
      printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$3"
    ) 2>/dev/null
}

identity() { # NAME SUBJECT: a kubeconfig with a client certificate of its own
  certificate "$1" "$2" "DNS:$1"
  local config=(config --kubeconfig="$1.kubeconfig")
  {
    kubectl "${config[@]}" set-cluster lk --server="https://$HOST_IP:6443" \
      --certificate-authority=ca.crt --embed-certs
    kubectl "${config[@]}" set-credentials "$1" --client-certificate="$1.crt" \
      --client-key="$1.key" --embed-certs
    kubectl "${config[@]}" set-context lk --cluster=lk --user="$1"
    kubectl "${config[@]}" use-context lk
  } >/dev/null
}

everybody() { # NODES
  local server="DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  certificate apiserver /CN=kube-apiserver "$server,IP:127.0.0.1,IP:10.96.0.1,IP:$HOST_IP"
  identity admin /O=system:masters/CN=admin
  identity controller-manager /CN=system:kube-controller-manager
  identity scheduler /CN=system:kube-scheduler
  identity proxy /CN=system:kube-proxy
  identity coredns /O=system:masters/CN=coredns
  local i
  for i in $(seq "$1"); do
    identity "node$i" "/O=system:nodes/CN=system:node:node$i"
    certificate "kubelet$i" "/CN=node$i" "DNS:node$i,IP:$(node_ip "$i")"
  done
}
