package main

import (
	"context"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

// details is the machine-readable part of an error.
type details struct {
	code    codes.Code
	reason  string
	domain  string
	about   map[string]string
	invalid []string
}

func detailsOf(err error) details {
	told := status.Convert(err)
	found := details{code: told.Code()}
	for _, detail := range told.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			found.reason, found.domain, found.about = detail.Reason, detail.Domain, detail.Metadata
		case *errdetails.BadRequest:
			for _, violation := range detail.FieldViolations {
				found.invalid = append(found.invalid, violation.Field)
			}
		}
	}
	return found
}

func (d details) is(code, reason string) bool {
	return d.code.String() == code && d.reason == reason && d.domain == "keyhold"
}

func errorDetails(ctx context.Context, keyhold *client, ok step) {
	unknown := "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10"
	_, err := keyhold.issued.GetIssuedApiKey(ctx, &pb.GetIssuedApiKeyRequest{KeyId: unknown})
	ok("an unknown key: ErrorInfo", detailsOf(err).is("NotFound", "API_KEY_NOT_FOUND"), err)
	ok("an unknown key: its metadata", detailsOf(err).about["key_id"] == unknown, err)

	_, err = keyhold.issued.CreateIssuedApiKey(ctx, &pb.CreateIssuedApiKeyRequest{Name: "go"})
	ok("bad input: ErrorInfo", detailsOf(err).is("InvalidArgument", "INVALID_ARGUMENT"), err)
	fields := detailsOf(err).invalid
	ok("bad input: BadRequest names the field", len(fields) == 1 && fields[0] == "actor_id", err)

	_, err = keyhold.unauthenticated.VerifyApiKey(ctx, &pb.VerifyApiKeyRequest{Credential: "x"})
	ok("without a token", detailsOf(err).is("Unauthenticated", "CALLER_UNAUTHENTICATED"), err)
}
