package main

import (
	"context"
	"encoding/base64"
	"slices"
	"time"

	"gopkg.in/macaroon.v2"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

// macaroonCaveats narrows a derived macaroon offline with gopkg.in/macaroon.v2; the server then enforces the caveat.
func macaroonCaveats(ctx context.Context, keyhold *client, ok step) {
	issued := issue(ctx, keyhold)
	derived := derive(ctx, keyhold, issued.GetSecret(), pb.TokenAlgorithm_TOKEN_ALGORITHM_MACAROON)
	read := decode(derived)
	ok("it is parsed", read.Location() == "keyhold" && encode(read) == derived, read.Location())

	narrow := verify(ctx, keyhold, narrowed(derived, "scope = read"))
	ok("a caveat removes a scope", narrow.IsValid && slices.Equal(narrow.Scopes, []string{"read"}), narrow)
	later, earlier := time.Now().Add(time.Minute).UTC(), time.Now().Add(-time.Minute).UTC()
	for _, one := range []struct{ name, caveat, wanted string }{
		{"a future time", "time < " + later.Format(time.RFC3339), "valid"},
		{"a past time", "time < " + earlier.Format(time.RFC3339), "EXPIRED"},
		{"an unknown caveat", "ip = 192.0.2.1", "SIGNATURE_INVALID"},
	} {
		verdict := verdictOn(verify(ctx, keyhold, narrowed(derived, one.caveat)))
		ok(one.name+": "+one.wanted, verdict == one.wanted, verdict)
	}
	wide := verify(ctx, keyhold, narrowed(derived, "scope = read", "scope = read deploy admin"))
	ok("no caveat adds a scope", wide.IsValid && slices.Equal(wide.Scopes, []string{"read"}), wide)
	ok("the derived macaroon is unchanged", len(verify(ctx, keyhold, derived).Scopes) == 2)
}

func narrowed(text string, caveats ...string) string {
	macaroon := decode(text)
	for _, caveat := range caveats {
		check(macaroon.AddFirstPartyCaveat([]byte(caveat)))
	}
	return encode(macaroon)
}

func decode(text string) *macaroon.Macaroon {
	read := new(macaroon.Macaroon)
	check(read.UnmarshalBinary(must(base64.RawURLEncoding.DecodeString(text))))
	return read
}

func encode(m *macaroon.Macaroon) string {
	return base64.RawURLEncoding.EncodeToString(must(m.MarshalBinary()))
}
