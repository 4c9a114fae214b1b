package main

import (
	"context"
	"net"

	"google.golang.org/grpc"

	pb "keyhold/bench/baseline/gen/keyhold/v2alpha1"
)

type apiKeysService struct {
	pb.UnimplementedApiKeysServiceServer
	known keys
}

func (s apiKeysService) VerifyApiKey(
	_ context.Context, request *pb.VerifyApiKeyRequest,
) (*pb.VerifyApiKeyResponse, error) {
	return s.known.verify(request.GetCredential()).proto, nil
}

func serveGRPC(listener net.Listener, known keys) error {
	server := grpc.NewServer()
	pb.RegisterApiKeysServiceServer(server, apiKeysService{known: known})
	return server.Serve(listener)
}
