package main

import (
	"context"
	"log"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "keyhold/bench/baseline/gen/keyhold/v2alpha1"
)

// calls is the number of unary calls of a connection in flight.
const calls = 16

// verifyUnary verifies random credentials by unary calls over a connection of its own until the end, and returns the number of verdicts.
func verifyUnary(address string, credentials []string, end time.Time) (int, error) {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	client := pb.NewApiKeysServiceClient(connection)
	var verdicts atomic.Int64
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			for time.Now().Before(end) {
				request := &pb.VerifyApiKeyRequest{Credential: credentials[rand.IntN(len(credentials))]}
				response, err := client.VerifyApiKey(context.Background(), request)
				if err != nil || !response.GetIsValid() {
					log.Fatalf("not valid: %v %v", response, err)
				}
				verdicts.Add(1)
			}
		})
	}
	all.Wait()
	return int(verdicts.Load()), nil
}
