package main

import (
	"context"
	"os"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	golangjwt "github.com/golang-jwt/jwt/v5"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

// golangJwt verifies derived JWTs with the published keys only, with github.com/golang-jwt/jwt and github.com/MicahParks/keyfunc.
func golangJwt(ctx context.Context, keyhold *client, ok step) {
	issued := issue(ctx, keyhold)
	token := derive(ctx, keyhold, issued.GetSecret(), pb.TokenAlgorithm_TOKEN_ALGORITHM_JWT)
	// By default keyfunc waits for its rate limit before it reads the keys again for an unknown kid.
	override := keyfunc.Override{Client: httpClient(), RateLimitWaitMax: time.Second}
	keys := must(keyfunc.NewDefaultOverrideCtx(ctx, []string{jwksURL(keyhold)}, override))
	parse := func(token, issuer string, algorithms ...string) (golangjwt.MapClaims, error) {
		claims := golangjwt.MapClaims{}
		options := []golangjwt.ParserOption{
			golangjwt.WithValidMethods(algorithms), golangjwt.WithIssuer(issuer), golangjwt.WithExpirationRequired(),
		}
		_, err := golangjwt.ParseWithClaims(token, claims, keys.Keyfunc, options...)
		return claims, err
	}
	algorithm := os.Getenv("KEYHOLD_SIGNING_ALGORITHM")
	claims, err := parse(token, "keyhold", algorithm)
	ok("signature, times and issuer are valid", err == nil, err)
	ok("its claims", claims["key_id"] == issued.IssuedApiKey.KeyId && claims["scope"] == "read deploy", claims)
	_, err = parse(tampered(token), "keyhold", algorithm)
	ok("a tampered JWT is rejected", err != nil)
	_, err = parse(token, "another", algorithm)
	ok("another issuer is rejected", err != nil)
	_, err = parse(token, "keyhold", "HS256", "RS256")
	ok("an algorithm that is not expected is rejected", err != nil)

	restricted := derive(ctx, keyhold, issued.GetSecret(), pb.TokenAlgorithm_TOKEN_ALGORITHM_JWT, "orders", "billing")
	isFor := func(token, audience string) bool {
		options := []golangjwt.ParserOption{golangjwt.WithValidMethods([]string{algorithm}), golangjwt.WithAudience(audience)}
		_, err := golangjwt.Parse(token, keys.Keyfunc, options...)
		return err == nil
	}
	ok("a JWT for this audience is accepted", isFor(restricted, "billing"))
	ok("a JWT for another audience is rejected", !isFor(restricted, "stock"))
	ok("a JWT without an audience is rejected where one is expected", !isFor(token, "billing"))
	claims, _ = parse(restricted, "keyhold", algorithm)
	audience, err := claims.GetAudience()
	ok("its audience", err == nil && len(audience) == 2 && audience[0] == "orders" && audience[1] == "billing", audience)
}

// tampered changes a bit of the signature.
func tampered(token string) string {
	changed := []byte(token)
	changed[len(changed)-40] ^= 1
	return string(changed)
}
