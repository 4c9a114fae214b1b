package main

import (
	"context"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// connect returns a connection to the server at this URL. It sends the token with each call.
func connect(server, token string) (*grpc.ClientConn, error) {
	address, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	transport := credentials.NewTLS(nil)
	if address.Scheme == "http" {
		transport = insecure.NewCredentials()
	}
	return grpc.NewClient(address.Host, grpc.WithTransportCredentials(transport), grpc.WithUnaryInterceptor(withToken(token)))
}

func withToken(token string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoke(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), method, req, reply, cc, opts...)
	}
}
