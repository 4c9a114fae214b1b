// The life cycle of a key over gRPC. Reads KEYHOLD_URL and KEYHOLD_TOKEN.
package main

import (
	"context"
	"fmt"
	"log"
	"net/url"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	pb "keyhold.test/example/gen/keyhold/v2alpha1"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Getenv("KEYHOLD_TOKEN"))
	channel := dial(os.Getenv("KEYHOLD_URL"))
	defer channel.Close()
	issuedKeys, keys := pb.NewIssuedApiKeysServiceClient(channel), pb.NewApiKeysServiceClient(channel)

	ttl := "90d"
	issued := must(issuedKeys.CreateIssuedApiKey(ctx, &pb.CreateIssuedApiKeyRequest{
		Name: "deploy bot", ActorId: "team_42", Scopes: []string{"read"}, Ttl: &ttl,
	}))
	fmt.Println("issued", issued.IssuedApiKey.KeyId)
	verdict := must(keys.VerifyApiKey(ctx, &pb.VerifyApiKeyRequest{Credential: issued.GetSecret()}))
	fmt.Println("the secret is valid:", verdict.IsValid)

	derived := must(keys.DeriveToken(ctx, &pb.DeriveTokenRequest{
		Credential: issued.GetSecret(), Algorithm: pb.TokenAlgorithm_TOKEN_ALGORITHM_JWT,
	}))
	verdict = must(keys.VerifyApiKey(ctx, &pb.VerifyApiKeyRequest{Credential: derived.Token.Token}))
	fmt.Println("the JWT is valid:", verdict.IsValid)

	must(keys.RevokeApiKey(ctx, &pb.RevokeApiKeyRequest{
		KeyId: issued.IssuedApiKey.KeyId, Reason: pb.RevocationReason_REVOCATION_REASON_SUPERSEDED,
	}))
	verdict = must(keys.VerifyApiKey(ctx, &pb.VerifyApiKeyRequest{Credential: derived.Token.Token}))
	fmt.Println("after the revocation:", verdict.GetErrorCode())
}

func dial(text string) *grpc.ClientConn {
	address := must(url.Parse(text))
	transport := credentials.NewTLS(nil)
	if address.Scheme == "http" {
		transport = insecure.NewCredentials()
	}
	return must(grpc.NewClient(address.Host, grpc.WithTransportCredentials(transport)))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
