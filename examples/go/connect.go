package main

import (
	"context"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
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
	return grpc.NewClient(address.Host, grpc.WithTransportCredentials(transport), grpc.WithPerRPCCredentials(bearer(token)))
}

// bearer is a token that each call and each stream sends.
type bearer string

func (token bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(token)}, nil
}

// RequireTransportSecurity returns false for servers without TLS on the same machine.
func (bearer) RequireTransportSecurity() bool { return false }
