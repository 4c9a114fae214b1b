package main

import (
	"context"
	"errors"
	"net/http"
	"os"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
	"keyhold.test/interop/gen/keyhold/v2alpha1/keyholdv2alpha1connect"
)

// connectGo tests connect-go, another implementation of the Connect protocol.
func connectGo(ctx context.Context, keyhold *client, ok step) {
	issued := issue(ctx, keyhold)
	for _, one := range []struct {
		name    string
		options []connect.ClientOption
	}{
		{"Connect in binary", nil},
		{"Connect in JSON", []connect.ClientOption{connect.WithProtoJSON()}},
		{"gRPC-Web", []connect.ClientOption{connect.WithGRPCWeb()}},
		{"gRPC-Web in JSON", []connect.ClientOption{connect.WithGRPCWeb(), connect.WithProtoJSON()}},
	} {
		keys := keyholdv2alpha1connect.NewApiKeysServiceClient(authorized{httpClient()}, keyhold.url, one.options...)
		verify := &pb.VerifyApiKeyRequest{Credential: issued.GetSecret()}
		verdict := must(keys.VerifyApiKey(ctx, connect.NewRequest(verify))).Msg
		ok(one.name+": verify", verdict.IsValid && verdict.GetKeyId() == issued.IssuedApiKey.KeyId, verdict)

		_, err := keys.RevokeApiKey(ctx, connect.NewRequest(&pb.RevokeApiKeyRequest{KeyId: "no id"}))
		ok(one.name+": an error names the field", invalidField(err) == "key_id", err)
	}
}

// invalidField returns the first field that the BadRequest of an error names.
func invalidField(err error) string {
	var told *connect.Error
	if !errors.As(err, &told) || told.Code() != connect.CodeInvalidArgument {
		return ""
	}
	for _, detail := range told.Details() {
		if bad, is := must(detail.Value()).(*errdetails.BadRequest); is {
			return bad.FieldViolations[0].Field
		}
	}
	return ""
}

// authorized sends the token with every request.
type authorized struct{ *http.Client }

func (client authorized) Do(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KEYHOLD_TOKEN"))
	return client.Client.Do(request)
}
