package main

import (
	"context"
	"net/url"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

// client has a stub for each service, with the admin token or without.
type client struct {
	url             string
	issued          pb.IssuedApiKeysServiceClient
	imported        pb.ImportedApiKeysServiceClient
	keys            pb.ApiKeysServiceClient
	self            pb.SelfServiceServiceClient
	jwks            pb.DerivedKeysServiceClient
	health          grpc_health_v1.HealthClient
	unauthenticated pb.ApiKeysServiceClient
	channel         *grpc.ClientConn
}

func newClient() *client {
	address := must(url.Parse(os.Getenv("KEYHOLD_URL")))
	admin := dial(address, grpc.WithPerRPCCredentials(bearer(os.Getenv("KEYHOLD_TOKEN"))))
	unauthenticated := dial(address)
	return &client{
		url:             address.String(),
		issued:          pb.NewIssuedApiKeysServiceClient(admin),
		imported:        pb.NewImportedApiKeysServiceClient(admin),
		keys:            pb.NewApiKeysServiceClient(admin),
		self:            pb.NewSelfServiceServiceClient(unauthenticated),
		jwks:            pb.NewDerivedKeysServiceClient(unauthenticated),
		health:          grpc_health_v1.NewHealthClient(unauthenticated),
		unauthenticated: pb.NewApiKeysServiceClient(unauthenticated),
		channel:         admin,
	}
}

func dial(address *url.URL, options ...grpc.DialOption) *grpc.ClientConn {
	transport := insecure.NewCredentials()
	if address.Scheme == "https" {
		transport = must(credentials.NewClientTLSFromFile(os.Getenv("KEYHOLD_CA_FILE"), ""))
	}
	options = append(options, grpc.WithTransportCredentials(transport))
	return must(grpc.NewClient(address.Host, options...))
}

// bearer sends a token with every call.
type bearer string

func (token bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(token)}, nil
}

// RequireTransportSecurity is false, only because the test uses the loopback address.
func (bearer) RequireTransportSecurity() bool { return false }
