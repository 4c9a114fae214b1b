package main

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

func lifeOfAKey(ctx context.Context, keyhold *client, ok step) {
	issued := issue(ctx, keyhold)
	keyID, actor, secret := issued.IssuedApiKey.KeyId, issued.IssuedApiKey.ActorId, issued.GetSecret()
	ok("issue", secret != "" && issued.IssuedApiKey.Status == pb.KeyStatus_KEY_STATUS_ACTIVE, issued.IssuedApiKey)

	got := must(keyhold.issued.GetIssuedApiKey(ctx, &pb.GetIssuedApiKeyRequest{KeyId: keyID}))
	ok("get", got.ActorId == actor && got.Metadata["env"] == "prod" && got.CreateTime.IsValid(), got)

	filter := fmt.Sprintf("actor_id=%q AND status=KEY_STATUS_ACTIVE", actor)
	page := must(keyhold.issued.ListIssuedApiKeys(ctx, &pb.ListIssuedApiKeysRequest{PageSize: 10, Filter: filter}))
	ok("list with a filter", len(page.IssuedApiKeys) == 1 && page.IssuedApiKeys[0].KeyId == keyID, page)

	updated := must(keyhold.issued.UpdateIssuedApiKey(ctx, &pb.UpdateIssuedApiKeyRequest{
		IssuedApiKey: &pb.IssuedApiKey{KeyId: keyID, Name: "renamed"},
		UpdateMask:   &fieldmaskpb.FieldMask{Paths: []string{"name"}},
	}))
	ok("update", updated.Name == "renamed" && len(updated.Scopes) == 2, updated)

	verdict := verify(ctx, keyhold, secret)
	ok("verify", verdict.IsValid && verdict.GetKeyId() == keyID && verdict.GetActorId() == actor, verdict)
	ok("verify: scopes", slices.Equal(verdict.Scopes, []string{"read", "deploy"}), verdict)

	jwt := derive(ctx, keyhold, secret, pb.TokenAlgorithm_TOKEN_ALGORITHM_JWT)
	ok("derive a JWT", verify(ctx, keyhold, jwt).GetCredentialType() == pb.CredentialType_CREDENTIAL_TYPE_JWT)
	macaroon := derive(ctx, keyhold, secret, pb.TokenAlgorithm_TOKEN_ALGORITHM_MACAROON)
	ok("derive a macaroon", verify(ctx, keyhold, macaroon).GetCredentialType() == pb.CredentialType_CREDENTIAL_TYPE_MACAROON)

	grace := "1h"
	rotated := must(keyhold.issued.RotateIssuedApiKey(ctx, &pb.RotateIssuedApiKeyRequest{KeyId: keyID, GracePeriod: &grace}))
	everything := []string{secret, rotated.Secret, jwt, macaroon}
	ok("rotate", rotated.Secret != secret && rotated.IssuedApiKey.KeyId == keyID)
	results := verdicts(ctx, keyhold, everything...)
	ok("both secrets and both tokens verify in the grace period, in one batch", len(results) == 4 && all(results, "valid"), results)

	revoke := &pb.RevokeApiKeyRequest{KeyId: keyID, Reason: pb.RevocationReason_REVOCATION_REASON_KEY_COMPROMISE}
	revoked := must(keyhold.keys.RevokeApiKey(ctx, revoke))
	ok("revoke", revoked.Status == pb.KeyStatus_KEY_STATUS_REVOKED && revoked.RevokeTime.IsValid(), revoked)
	results = verdicts(ctx, keyhold, everything...)
	ok("both secrets and both tokens are revoked at once", len(results) == 4 && all(results, "REVOKED"), results)
	var alone []string
	for _, credential := range everything {
		alone = append(alone, verdictOn(verify(ctx, keyhold, credential)))
	}
	ok("single verdicts are the same", all(alone, "REVOKED"), alone)
	_, err := keyhold.keys.RevokeApiKey(ctx, revoke)
	ok("a revoked key cannot be revoked again", detailsOf(err).is("FailedPrecondition", "API_KEY_ALREADY_REVOKED"), err)
}
