// The life cycle of a key over gRPC, and with the argument `service` a web service that is protected by Keyhold. Reads KEYHOLD_URL and
// KEYHOLD_TOKEN.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	pb "keyhold.test/example/gen/keyhold/v2alpha1"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "service" {
		log.Fatal(serve())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	connection := must(connect(os.Getenv("KEYHOLD_URL"), os.Getenv("KEYHOLD_TOKEN")))
	issuedKeys, keys := pb.NewIssuedApiKeysServiceClient(connection), pb.NewApiKeysServiceClient(connection)
	create := &pb.CreateIssuedApiKeyRequest{Name: "deploy bot", ActorId: "team_42", Scopes: []string{"read"}}
	issued := must(issuedKeys.CreateIssuedApiKey(ctx, create))
	fmt.Println("issued", issued.IssuedApiKey.KeyId)
	verdict := must(keys.VerifyApiKey(ctx, &pb.VerifyApiKeyRequest{Credential: issued.GetSecret()}))
	fmt.Println("the secret is valid:", verdict.IsValid)

	derived := must(keys.DeriveToken(ctx, &pb.DeriveTokenRequest{
		Credential: issued.GetSecret(), Algorithm: pb.TokenAlgorithm_TOKEN_ALGORITHM_JWT,
	}))
	// For thousands of verifications per second.
	stream := must(openStream(ctx, keys))
	verdict = must(stream.verify(ctx, &pb.VerifyApiKeyRequest{Credential: derived.Token.Token}))
	fmt.Println("the JWT is valid:", verdict.IsValid)

	must(keys.RevokeApiKey(ctx, &pb.RevokeApiKeyRequest{
		KeyId: issued.IssuedApiKey.KeyId, Reason: pb.RevocationReason_REVOCATION_REASON_SUPERSEDED,
	}))
	verdict = must(stream.verify(ctx, &pb.VerifyApiKeyRequest{Credential: derived.Token.Token}))
	fmt.Println("after the revocation:", verdict.GetErrorCode())
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
