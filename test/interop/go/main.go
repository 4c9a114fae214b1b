// A client of Keyhold over grpc-go, which makes all calls of the life of a key, and prints TAP.
//
// KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token, KEYHOLD_CA_FILE (for an https URL) the trusted certificate, and
// KEYHOLD_ROTATE_SIGNING_KEY a program that rotates the signing key of the server, whose algorithm is KEYHOLD_SIGNING_ALGORITHM.
// KEYHOLD_SERVE is a program that runs another server.
package main

import (
	"context"
	"os"
	"time"
)

// timeout of the whole run.
const timeout = 5 * time.Minute

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	keyhold := newClient()
	var tap report
	tap.topic("life of a key", func(ok step) { lifeOfAKey(ctx, keyhold, ok) })
	tap.topic("imported keys", func(ok step) { importedKeys(ctx, keyhold, ok) })
	tap.topic("errors", func(ok step) { errorDetails(ctx, keyhold, ok) })
	tap.topic("JWT offline", func(ok step) { jwtOffline(ctx, keyhold, ok) })
	tap.topic("golang-jwt with keyfunc", func(ok step) { golangJwt(ctx, keyhold, ok) })
	tap.topic("macaroon caveats", func(ok step) { macaroonCaveats(ctx, keyhold, ok) })
	tap.topic("connect-go", func(ok step) { connectGo(ctx, keyhold, ok) })
	tap.topic("server reflection", func(ok step) { serverReflection(ctx, keyhold, ok) })
	tap.topic("drain", func(ok step) { drain(ctx, ok) })
	os.Exit(tap.end())
}
