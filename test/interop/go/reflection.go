package main

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

// serverReflection lists the services in both versions of the protocol, because grpcurl uses only v1 where it exists.
func serverReflection(ctx context.Context, keyhold *client, ok step) {
	wanted := pb.ApiKeysService_ServiceDesc.ServiceName
	names := listServices(ctx, keyhold.channel)
	ok("v1 lists the services", slices.Contains(names, wanted), names)
	names = listServicesAlpha(ctx, keyhold.channel)
	ok("v1alpha lists the services", slices.Contains(names, wanted), names)
}

func listServices(ctx context.Context, channel *grpc.ClientConn) (names []string) {
	stream := must(reflection.NewServerReflectionClient(channel).ServerReflectionInfo(ctx))
	list := &reflection.ServerReflectionRequest_ListServices{ListServices: "*"}
	check(stream.Send(&reflection.ServerReflectionRequest{MessageRequest: list}))
	for _, service := range must(stream.Recv()).GetListServicesResponse().GetService() {
		names = append(names, service.Name)
	}
	check(stream.CloseSend())
	return names
}

func listServicesAlpha(ctx context.Context, channel *grpc.ClientConn) (names []string) {
	stream := must(alpha.NewServerReflectionClient(channel).ServerReflectionInfo(ctx))
	list := &alpha.ServerReflectionRequest_ListServices{ListServices: "*"}
	check(stream.Send(&alpha.ServerReflectionRequest{MessageRequest: list}))
	for _, service := range must(stream.Recv()).GetListServicesResponse().GetService() {
		names = append(names, service.Name)
	}
	check(stream.CloseSend())
	return names
}
