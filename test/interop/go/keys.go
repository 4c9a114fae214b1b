package main

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

// issue creates a key of a unique actor, with the scopes read and deploy.
func issue(ctx context.Context, keyhold *client) *pb.CreateIssuedApiKeyResponse {
	return must(keyhold.issued.CreateIssuedApiKey(ctx, &pb.CreateIssuedApiKeyRequest{
		Name:     "go",
		ActorId:  "go-" + rand.Text(),
		Scopes:   []string{"read", "deploy"},
		Metadata: map[string]string{"env": "prod"},
	}))
}

func derive(ctx context.Context, keyhold *client, credential string, algorithm pb.TokenAlgorithm, audience ...string) string {
	request := &pb.DeriveTokenRequest{Credential: credential, Algorithm: algorithm, Audience: audience}
	return must(keyhold.keys.DeriveToken(ctx, request)).Token.Token
}

func verify(ctx context.Context, keyhold *client, credential string) *pb.VerifyApiKeyResponse {
	return must(keyhold.keys.VerifyApiKey(ctx, &pb.VerifyApiKeyRequest{Credential: credential}))
}

// verdicts returns `valid`, or the error code without its prefix, for each credential, from one batch.
func verdicts(ctx context.Context, keyhold *client, credentials ...string) []string {
	var requests []*pb.VerifyApiKeyRequest
	for _, credential := range credentials {
		requests = append(requests, &pb.VerifyApiKeyRequest{Credential: credential})
	}
	answer := must(keyhold.keys.BatchVerifyApiKeys(ctx, &pb.BatchVerifyApiKeysRequest{Requests: requests}))
	var results []string
	for _, result := range answer.Results {
		results = append(results, verdictOn(result))
	}
	return results
}

func verdictOn(answer *pb.VerifyApiKeyResponse) string {
	if answer.IsValid {
		return "valid"
	}
	return strings.TrimPrefix(answer.GetErrorCode().String(), "VERIFICATION_ERROR_")
}

func all(results []string, wanted string) bool {
	return len(results) > 0 && !slices.ContainsFunc(results, func(one string) bool { return one != wanted })
}

func newRawKey() string { return "legacy-" + rand.Text() }
