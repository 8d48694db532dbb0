# One of two hosts that are joined by a virtual wire: ADDRESS is its own, ROLE says what it does. The one that calls has no
# RDMA device at first, and then has one. The one that serves has a name service, which the other one asks over TLS.
ulimit -l unlimited
ip link set lo up
wire=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
ip addr add "$ADDRESS/24" dev "$wire"
ip link set "$wire" mtu 9000 up
export DEVICE="$wire"
run() { "$NODE" --import "$REGISTER" "$PROGRAM" "$ROLE"; }
secrets=$(mktemp -d)
echo VGhlIHR3byBndWVzdHMga25vdyB0aGlz > "$secrets/token"
chmod 600 "$secrets/token"
if [ "$ROLE" = call ]; then
  WIRE=tcp REASON=NO_RENDEZVOUS run || exit 1
  # The certificate is localhost's.
  echo "$SERVER localhost" > /etc/hosts
  export FASTSOCKETS_NAMES=https://localhost:7946
  export FASTSOCKETS_NAMES_TOKEN_FILE="$secrets/token" FASTSOCKETS_NAMES_CA_FILE="$FIXTURES/localhost-cert.pem"
else
  printf "tokens: [{name: guest, token: '%s', prefixes: [''], access: read}]\n" "$(cat "$secrets/token")" > "$secrets/tokens.yaml"
  cp "$FIXTURES/localhost-key.pem" "$secrets/key.pem"
  chmod 600 "$secrets/tokens.yaml" "$secrets/key.pem"
  "$NODE" "$CLI" named --store-kind memory --log-level error --tcp-listen "$SERVER:7946" --tcp-tokens "$secrets/tokens.yaml" \
    --tcp-certificate "$FIXTURES/localhost-cert.pem" --tcp-key "$secrets/key.pem" &
  until [ -S /run/fastsockets/named.sock ]; do sleep 0.2; done
fi
rdma link add rxe0 type rxe netdev "$wire" || exit 99
WIRE=verbs LAST=yes run
