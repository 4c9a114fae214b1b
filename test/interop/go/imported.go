package main

import (
	"context"

	"google.golang.org/grpc/health/grpc_health_v1"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

func importedKeys(ctx context.Context, keyhold *client, ok step) {
	health := must(keyhold.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{}))
	ok("the server reports that it is healthy", health.Status == grpc_health_v1.HealthCheckResponse_SERVING, health)

	rawKey := newRawKey()
	one := &pb.CreateImportedApiKeyRequest{RawKey: rawKey, Name: "go", ActorId: "go", Scopes: []string{"read"}}
	imported := must(keyhold.imported.CreateImportedApiKey(ctx, one))
	ok("import", imported.Status == pb.KeyStatus_KEY_STATUS_ACTIVE, imported)
	verdict := verify(ctx, keyhold, rawKey)
	ok("verify the raw key", verdict.IsValid && verdict.GetKeyId() == imported.KeyId, verdict)

	other := &pb.CreateImportedApiKeyRequest{RawKey: newRawKey(), Name: "go", ActorId: "go"}
	batch := must(keyhold.imported.BatchCreateImportedApiKeys(ctx, &pb.BatchCreateImportedApiKeysRequest{
		Requests: []*pb.CreateImportedApiKeyRequest{other, one},
	}))
	exists := pb.BatchCreateImportedApiKeysError_BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS
	ok("a batch imports what it can", batch.SuccessCount == 1 && batch.FailureCount == 1, batch)
	ok("and reports the failed item", batch.Results[1].GetErrorCode() == exists, batch)

	reason := pb.RevocationReason_REVOCATION_REASON_SUPERSEDED
	revoked := must(keyhold.self.SelfRevokeApiKey(ctx, &pb.SelfRevokeApiKeyRequest{Credential: rawKey, Reason: reason}))
	ok("a key revokes itself without a caller's credential", revoked.KeyId == imported.KeyId, revoked)
	results := verdicts(ctx, keyhold, rawKey, other.RawKey, "never imported")
	ok("a batch has a verdict on each", results[0] == "REVOKED" && results[1] == "valid" && results[2] == "NOT_FOUND", results)

	deleted := batch.Results[0].ImportedApiKey.KeyId
	must(keyhold.imported.DeleteImportedApiKey(ctx, &pb.DeleteImportedApiKeyRequest{KeyId: deleted}))
	ok("delete", all(verdicts(ctx, keyhold, other.RawKey), "NOT_FOUND"))
}
