package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"os/exec"

	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

// jwtOffline verifies derived JWTs with the published keys only, with github.com/lestrrat-go/jwx.
func jwtOffline(ctx context.Context, keyhold *client, ok step) {
	issued := issue(ctx, keyhold)
	derived := func() []byte {
		return []byte(derive(ctx, keyhold, issued.GetSecret(), pb.TokenAlgorithm_TOKEN_ALGORITHM_JWT))
	}
	first := derived()
	algorithm := os.Getenv("KEYHOLD_SIGNING_ALGORITHM")
	signedWith, _ := must(jws.Parse(first)).Signatures()[0].ProtectedHeaders().Algorithm()
	ok("the algorithm is that of the server", signedWith.String() == algorithm, signedWith)
	before := fetchKeys(ctx, keyhold)
	token, err := jwt.Parse(first, jwt.WithKeySet(before), jwt.WithIssuer("keyhold"))
	ok("signature, times and issuer are valid", err == nil, err)
	var keyID, scope string
	subject, _ := token.Subject()
	found := token.Get("key_id", &keyID) == nil && token.Get("scope", &scope) == nil
	ok("its claims", found && subject == issued.IssuedApiKey.ActorId && keyID == issued.IssuedApiKey.KeyId && scope == "read deploy", token)

	_, err = jwt.Parse([]byte(tampered(string(first))), jwt.WithKeySet(before))
	ok("a tampered JWT is rejected", err != nil)
	_, err = jwt.Parse(first, jwt.WithKeySet(before), jwt.WithIssuer("another"))
	ok("another issuer is rejected", err != nil)

	must(exec.CommandContext(ctx, os.Getenv("KEYHOLD_ROTATE_SIGNING_KEY")).CombinedOutput())
	second := derived()
	_, err = jwt.Parse(second, jwt.WithKeySet(before))
	ok("after a rotation of the signing key, the key of a new JWT is missing in the old set", err != nil)
	after := fetchKeys(ctx, keyhold)
	_, err = jwt.Parse(second, jwt.WithKeySet(after))
	ok("a new JWT verifies with the new set", err == nil, err)
	_, err = jwt.Parse(first, jwt.WithKeySet(after))
	ok("an older JWT still verifies", err == nil, err)
	over := must(keyhold.jwks.GetJwks(ctx, &pb.GetJwksRequest{}))
	ok("the set is the same over gRPC", len(over.Keys) >= after.Len() && over.Keys[0].Alg == algorithm && (over.Keys[0].Y != nil) == (algorithm == "ES256"), over)
}

func fetchKeys(ctx context.Context, keyhold *client) jwk.Set {
	return must(jwk.Fetch(ctx, jwksURL(keyhold), jwk.WithHTTPClient(httpClient())))
}

func jwksURL(keyhold *client) string {
	return keyhold.url + "/v2alpha1/derivedKeys/jwks.json"
}

func httpClient() *http.Client {
	path := os.Getenv("KEYHOLD_CA_FILE")
	if path == "" {
		return http.DefaultClient
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(path)))
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}
