#!/bin/sh
# Run fastbandit with the keys that all deciders share: where a folder of them is mounted, the
# data folder points there, so that a key made or revoked later is seen without a restart.
set -eu
keys=/etc/fastbandit/keys/keys.json
if [ -e "$keys" ]; then
    ln -sfn "$keys" "$FASTBANDIT_SERVER_DATA_DIR/keys.json"
fi
exec fastbandit "$@"
